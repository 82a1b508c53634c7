"""export.py MODEL_DIR OUT: writes the encoder file that the crate `reader` loads.

MODEL_DIR has all-MiniLM-L6-v2. Its weights become numbers of seven bits, a scale per channel. The model returns a vector for each token;
`reader` takes the means. File: `earread1`, SHA-256 of what follows, then vocabulary (a token per line) and model, each after its length.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import BertModel

import envelope


class Tokens(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids).last_hidden_state


def main(folder, out):
    model = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager").eval()
    with tempfile.TemporaryDirectory() as work:
        plain, ready, small = (Path(work) / f"{name}.onnx" for name in ("plain", "ready", "small"))
        axes = {"input_ids": {0: "text", 1: "token"}}
        torch.onnx.export(Tokens(model), (torch.tensor([[101, 2023, 102]]),), plain, input_names=["input_ids"],
                          output_names=["tokens"], dynamic_axes=axes, opset_version=17, dynamo=False)
        prepare = [sys.executable, "-m", "onnxruntime.quantization.preprocess", "--skip_symbolic_shape", "True"]
        subprocess.run([*prepare, "--input", plain, "--output", ready], check=True)
        # Seven bits: processors without VNNI add two products in 16 bits, which larger weights exceed.
        quantize_dynamic(ready, small, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        words = json.loads((Path(folder) / "tokenizer.json").read_text())["model"]["vocab"]
        parts = ["\n".join(sorted(words, key=words.get)).encode(), small.read_bytes()]
    envelope.write(out, b"earread1", parts)


if __name__ == "__main__":
    main(*sys.argv[1:])
