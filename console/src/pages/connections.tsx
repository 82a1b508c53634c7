// The servers that get Scans, and how each fares.
import { Empty, Foreign, Loaded, Page } from "../parts/basics";
import { ConnectionState } from "../parts/health";
import { pageOf, useConnections } from "../parts/names";
import { duration, now, number, percent, Time } from "../parts/time";
import { href } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";

export function Connections({ namespace }: { namespace: string }) {
  const connections = useConnections(`namespaces/${namespace}`);
  const create = mayWrite.value && <a class="button primary" href={href(`n/${namespace}/connections/new`)}>{w.connections.new}</a>;
  return (
    <Page title={w.connections.title} wide actions={create}>
      <Loaded query={connections}>
        {(list) => (list.length === 0
          ? <Empty title={w.connections.none} why={w.connections.noneWhy}>{create}</Empty>
          : (
            <div class="scroll">
              <table class="list">
                <thead>
                  <tr>
                    <th scope="col">{w.connections.name}</th><th scope="col">{w.managers.state}</th><th scope="col" class="num">{w.connections.rate}</th>
                    <th scope="col">{w.connections.last}</th><th scope="col" class="num">{w.connections.waiting}</th><th scope="col">{w.connections.oldest}</th><th scope="col">{w.connections.breaker}</th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((one) => (
                    <tr key={one.name}>
                      <th scope="row"><a href={pageOf(one.name)}><Foreign>{one.nickname}</Foreign></a><span class="faint small"><Foreign>{hostOf(one.url)}</Foreign></span></th>
                      <td><ConnectionState connection={one} now={now.value} /></td>
                      <td data-label={w.connections.rate} class="num">{one.health?.successRate === undefined ? "–" : percent(one.health.successRate)}</td>
                      <td data-label={w.connections.last}><Time iso={one.health?.lastSuccessTime} focusable /></td>
                      <td data-label={w.connections.waiting} class="num">{one.health ? waiting(one.health.pending) : "–"}</td>
                      <td data-label={w.connections.oldest} class={one.health?.oldestPendingTime ? "" : "none"}>{one.health?.oldestPendingTime ? duration(now.value - Date.parse(one.health.oldestPendingTime)) : "–"}</td>
                      <td data-label={w.connections.breaker}>{one.health ? w.connection.breakers[one.health.breaker] : "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ))}
      </Loaded>
    </Page>
  );
}

export function waiting(count: number): string {
  return count >= 1000 ? w.connections.many : number(count);
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}
