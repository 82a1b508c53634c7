// Which Connections get a Manager's Scans.
import type { Connection } from "../api/types";
import { w } from "../words/en";
import { Foreign } from "./basics";
import { ConnectionState } from "./health";
import { now } from "./time";

export const MAX_NOTICES = 10;

export function NoticeChoice({ connections, chosen, onChange }: { connections: Connection[]; chosen: string[]; onChange: (chosen: string[]) => void }) {
  if (connections.length === 0) {
    return <p class="faint">{w.manager.noConnections}</p>;
  }
  return (
    <>
      {connections.map((one) => {
        const on = chosen.includes(one.name);
        return (
          <label class="choice" key={one.name}>
            <input type="checkbox" checked={on} disabled={!on && chosen.length >= MAX_NOTICES} onChange={() => onChange(on ? chosen.filter((name) => name !== one.name) : [...chosen, one.name])} />
            <Foreign>{one.nickname}</Foreign> <ConnectionState connection={one} now={now.value} />
          </label>
        );
      })}
    </>
  );
}
