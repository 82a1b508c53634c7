// Which Connections get a Manager's Scans, and which of the Scans.
import type { Connection, Notice } from "../api/types";
import { w } from "../words/en";
import { Field, Foreign } from "./basics";
import { fieldError } from "./errors";
import { ConnectionState } from "./health";
import { now } from "./time";

const MAX_NOTICES = 10;

type Props = { connections: Connection[]; chosen: Notice[]; error: unknown; onChange: (chosen: Notice[]) => void };

export function NoticeChoice({ connections, chosen, error, onChange }: Props) {
  if (connections.length === 0) {
    return <p class="faint">{w.manager.noConnections}</p>;
  }
  return (
    <>
      {connections.map((one) => {
        const place = chosen.findIndex((notice) => notice.connection === one.name);
        const notice = chosen[place];
        const others = chosen.filter((other) => other !== notice);
        return (
          <div key={one.name}>
            <label class="choice">
              <input type="checkbox" checked={notice !== undefined} disabled={notice === undefined && chosen.length >= MAX_NOTICES} onChange={() => onChange(notice ? others : [...chosen, { type: "HTTP_REQUEST", connection: one.name }])} />
              <Foreign>{one.nickname}</Foreign> <ConnectionState connection={one} now={now.value} />
            </label>
            {notice && (
              <Field label={w.manager.noticeFilter} error={fieldError(error, `notices[${place}].filter`)}>
                {(attributes) => (
                  <input
                    {...attributes} value={notice.filter ?? ""} placeholder={w.manager.noticeFilterExample} spellcheck={false}
                    onInput={(event) => onChange(chosen.map((other) => (other === notice ? filtered(notice, event.currentTarget.value) : other)))}
                  />
                )}
              </Field>
            )}
          </div>
        );
      })}
    </>
  );
}

function filtered({ type, connection }: Notice, filter: string): Notice {
  return filter === "" ? { type, connection } : { type, connection, filter };
}
