// What a Manager looks for, and where it is taken over.
import { useSignal } from "@preact/signals";
import type { Manager } from "../api/types";
import { Empty } from "../parts/basics";
import { Confirm } from "../parts/dialog";
import { pageOf } from "../parts/names";
import { Understood } from "../parts/understood";
import { mayWrite } from "../session";
import { w } from "../words/en";
import { Editor } from "./manager-edit";

export function ManagerLooks({ manager, put }: { manager: Manager; put: (manager: Manager) => void }) {
  const editing = useSignal(false);
  const asking = useSignal(false);
  const instructions = manager.instructions;
  if (!instructions) {
    return <Empty title={w.looks.none} why={manager.state === "APPLY_FAILED" ? w.looks.noneFailed : w.looks.noneYet} />;
  }
  if (editing.value) {
    return <Editor manager={manager} instructions={instructions} put={put} onEnd={() => { editing.value = false; }} />;
  }
  return (
    <>
      <Understood instructions={instructions} mutes={manager.mutes ?? []} settings={pageOf(manager.name, "settings")} />
      {mayWrite.value && (
        <div class="actions">
          {manager.mode === "AUTOMATIC"
            ? <button type="button" onClick={() => { asking.value = true; }}>{w.looks.takeOver}</button>
            : <button type="button" onClick={() => { editing.value = true; }}>{w.looks.edit}</button>}
        </div>
      )}
      {asking.value && (
        <Confirm
          title={w.looks.takeOver} text={<p>{w.looks.takeOverMeans}</p>} action={w.looks.takeOver}
          run={async () => { editing.value = true; }} onClose={() => { asking.value = false; }}
        />
      )}
    </>
  );
}
