// One Manager: its Scans, what it looks for, its feeds, a place to try it, its settings.
import { api } from "../api";
import { tell } from "../parts/announce";
import { Act, Loaded, Page, Tabs } from "../parts/basics";
import { ObjectMenu } from "../parts/dialog";
import { tellError } from "../parts/errors";
import { ManagerState } from "../parts/health";
import { pageOf } from "../parts/names";
import { useQuery } from "../parts/query";
import { Time } from "../parts/time";
import { href } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";
import { ScansView } from "./inbox";
import { ManagerFeeds } from "./manager-feeds";
import { ManagerLooks } from "./manager-looks";
import { ManagerSettings } from "./manager-settings";
import { ManagerTry } from "./manager-try";
import { focusOf, OnOff } from "./managers";

const TABS = ["scans", "looks", "feeds", "try", "settings"] as const;
type Tab = (typeof TABS)[number];
/** While it is compiled, one wants to see that end. */
const PENDING_MS = 2_000;

export function ManagerPage({ namespace, manager, tab }: { namespace: string; manager: string; tab: string | undefined }) {
  const name = `namespaces/${namespace}/managers/${encodeURIComponent(manager)}`;
  const slow = useQuery(name, (read) => api.manager(name, read));
  const pending = slow.data?.state === "PENDING_APPLY";
  useQuery(pending ? name : null, async (read) => {
    const fresh = await api.manager(name, read);
    if (fresh.state !== "PENDING_APPLY") {
      slow.set(fresh);
    }
    return fresh;
  }, PENDING_MS);
  const data = slow.data;
  const current: Tab = TABS.find((one) => one === tab) ?? "scans";
  const apply = async () => {
    slow.set(await api.applyManager(name));
    tell(w.manager.applying);
  };
  return (
    <Page
      title={data?.nickname ?? w.managers.one} wide back={{ href: href(`n/${namespace}/managers`), text: w.managers.title }}
      lead={data && (
        <p class="lead-states">
          <ManagerState manager={data} /> <span class="faint">{focusOf(data)}{data.input?.sensitivity && <> · {w.sensitivityLabel}: {w.sensitivity[data.input.sensitivity]}</>} · {w.sources[data.source.type]} · {w.manager.modes[data.mode]}{data.applyTime && <> · {w.manager.appliedAt} <Time iso={data.applyTime} focusable /></>}</span>
        </p>
      )}
      actions={data && (
        <>
          <OnOff manager={data} reload={slow.reload} />
          <ObjectMenu name={data.name} value={data} path={data.name}>
            {mayWrite.value && data.mode === "AUTOMATIC" && <Act run={apply} onError={(error) => tellError(error)}>{w.manager.applyAgain}</Act>}
          </ObjectMenu>
        </>
      )}
    >
      <Tabs label={w.managers.one} current={current} tabs={TABS.map((one) => ({ id: one, text: w.manager.tabs[one], href: pageOf(name, one === "scans" ? "" : one) }))} />
      <Loaded query={slow}>
        {(found) => (
          <>
            {found.state === "APPLY_FAILED" && (
              <div class="notice bad">
                <p><strong>{w.manager.applyErrors[found.applyError?.code ?? ""] ?? w.manager.states.failed}</strong> {found.applyError?.message}</p>
                {found.instructions && <p>{w.manager.oldAtWork}</p>}
                {mayWrite.value && <div class="actions"><Act run={apply} onError={(error) => tellError(error)}>{w.manager.applyAgain}</Act></div>}
              </div>
            )}
            {found.state !== "APPLY_FAILED" && found.health.state !== "OK" && found.health.reasons.map((reason) => <p class="notice warn" key={reason}>{w.manager.reasons[reason] ?? reason}</p>)}
            {current === "scans" && <ScansView title={undefined} namespace={namespace} managers={[found]} of={found} />}
            {current === "looks" && <ManagerLooks manager={found} put={slow.set} />}
            {current === "feeds" && <ManagerFeeds manager={found} />}
            {current === "try" && <ManagerTry manager={found} />}
            {current === "settings" && <ManagerSettings manager={found} put={slow.set} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}
