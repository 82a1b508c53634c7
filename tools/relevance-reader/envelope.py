"""The form of the files that the crate `reader` loads: format, SHA-256 of what follows, and parts after their length."""

import hashlib
import struct
from pathlib import Path


def write(out, format, parts):
    body = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    checksum = hashlib.sha256(body)
    Path(out).write_bytes(format + checksum.digest() + body)
    print(f"{out}: {(len(body) + 40) / 1e6:.1f} MB, {checksum.hexdigest()}")
