// One delivery: what was sent, each attempt, where its time went, and what the receiver said.
import { api } from "../api";
import { parent, type Attempt, type Connection, type DeliveryWithAttempts } from "../api/types";
import { tell } from "../parts/announce";
import { Act, Foreign, Loaded, Page, State } from "../parts/basics";
import { ObjectMenu } from "../parts/dialog";
import { Failed, tellError } from "../parts/errors";
import { DeliveryMark } from "../parts/health";
import { headline } from "../parts/marked";
import { pageOf } from "../parts/names";
import { useQuery } from "../parts/query";
import { duration, Time, utc } from "../parts/time";
import { href } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";

const BUSY_MS = 2_000;
const CALM_MS = 15_000;

export function DeliveryPage({ connection: connectionName, delivery }: { connection: string; delivery: string }) {
  const name = `${connectionName}/deliveries/${encodeURIComponent(delivery)}`;
  const connection = useQuery(connectionName, (read) => api.connection(connectionName, read));
  const calm = useQuery(name, (read) => api.delivery(name, read), CALM_MS);
  const moving = calm.data !== undefined && ["PENDING", "IN_FLIGHT"].includes(calm.data.state);
  useQuery(moving ? name : null, async (read) => {
    const fresh = await api.delivery(name, read);
    if (fresh.updateTime !== calm.data?.updateTime) {
      calm.set(fresh);
    }
    return fresh;
  }, BUSY_MS);
  const retry = async () => {
    await api.retryDelivery(name);
    tell(w.delivery.retried);
    calm.reload();
  };
  const data = calm.data;
  return (
    <Page
      title={w.delivery.one} back={{ href: pageOf(connectionName), text: connection.data?.nickname ?? w.connections.one }}
      lead={data && <p class="lead-states"><DeliveryMark state={data.state} /> <span class="faint">{w.delivery.createdAt} <Time iso={data.createTime} focusable />{data.nextAttemptTime && <>, {w.delivery.nextAt} <Time iso={data.nextAttemptTime} focusable due /></>}</span></p>}
      actions={data && (
        <>
          {mayWrite.value && <Act class={data.state === "SUCCEEDED" ? "" : "primary"} run={retry} onError={tellError}>{data.state === "SUCCEEDED" ? w.delivery.again : w.delivery.retry}</Act>}
          <ObjectMenu name={data.name} value={data} path={data.name} />
        </>
      )}
    >
      <Loaded query={calm}>
        {(found) => (
          <>
            <Request delivery={found} connection={connection.data} />
            <section class="block">
              <h2>{w.delivery.attempts} <span class="count">{found.attemptCount}</span></h2>
              {found.attempts.length === 0 && <p class="faint">{w.delivery.notYet}</p>}
              <ol class="attempts" reversed>
                {[...found.attempts].reverse().map((attempt, at) => <AttemptView key={attempt.time + at} attempt={attempt} />)}
              </ol>
              {found.attemptCount > found.attempts.length && <p class="faint">{w.delivery.newestOnly(found.attempts.length)}</p>}
            </section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Request({ delivery, connection }: { delivery: DeliveryWithAttempts; connection: Connection | undefined }) {
  const scan = useQuery(delivery.scan ?? null, (read) => api.scan(delivery.scan ?? "", read), null);
  const body = delivery.event ?? (scan.data && { type: "SCAN", name: scan.data.name, post: scan.data.post });
  return (
    <section class="block">
      <h2>{w.delivery.request}</h2>
      {connection && <p class="mono request-line">{connection.method} <Foreign>{connection.url}</Foreign></p>}
      {connection && Object.keys(connection.headers).length > 0 && <p class="small faint">{w.delivery.headers} {Object.keys(connection.headers).map((name) => <code key={name}>{name}: ••• </code>)}</p>}
      {scan.error !== undefined && <Failed error={scan.error} retry={scan.reload} />}
      {body && (
        <>
          {delivery.event && <p>{w.delivery.events[delivery.event.type]}</p>}
          {scan.data && <p><a href={href(`n/${delivery.name.split("/")[1]}/inbox`, { scan: `${parent(scan.data.name).split("/").pop()}.${scan.data.name.split("/").pop()}` })}><Foreign>{headline(scan.data.post)}</Foreign></a></p>}
          {connection?.format === undefined || connection.format === "EARSHOT"
            ? <details><summary>{w.delivery.body}</summary><pre class="code" tabIndex={0}>{JSON.stringify(body, null, 2)}</pre></details>
            : <p class="faint">{w.delivery.otherFormat(w.newConnection.formats[connection.format])}</p>}
        </>
      )}
    </section>
  );
}

const PHASES = ["dns", "connect", "tls", "firstByte", "rest"] as const;

/** The first byte is counted from the start; the phases before it are parts of that. */
function phases(attempt: Attempt): Record<(typeof PHASES)[number], number> {
  const { dnsMs = 0, connectMs = 0, tlsMs = 0, firstByteMs } = attempt.phases;
  const before = dnsMs + connectMs + tlsMs;
  const head = firstByteMs ?? attempt.latencyMs;
  return { dns: dnsMs, connect: connectMs, tls: tlsMs, firstByte: Math.max(0, head - before), rest: Math.max(0, attempt.latencyMs - Math.max(head, before)) };
}

function AttemptView({ attempt }: { attempt: Attempt }) {
  const good = attempt.statusCode !== undefined && attempt.statusCode >= 200 && attempt.statusCode < 300;
  const parts = phases(attempt);
  const total = Math.max(1, PHASES.reduce((sum, one) => sum + parts[one], 0));
  const words = PHASES.filter((one) => parts[one] > 0).map((one) => `${w.delivery.phases[one]} ${duration(parts[one])}`).join(", ");
  let from = 0;
  return (
    <li class="attempt">
      <p>
        <State tone={good ? "good" : "bad"}>{attempt.statusCode ?? w.delivery.errors[attempt.error ?? ""] ?? attempt.error ?? w.delivery.noAnswer}</State>{" "}
        <time dateTime={attempt.time} class="faint">{utc(attempt.time)}</time> <span class="faint">{attempt.address}</span>
      </p>
      <svg class="phases" role="img" aria-label={words || duration(attempt.latencyMs)} width="100%" height="10">
        {PHASES.map((one) => {
          const x = from;
          from += parts[one] / total;
          return parts[one] > 0 && <rect key={one} class={one} x={`${x * 100}%`} width={`${Math.max(0.4, (parts[one] / total) * 100)}%`} y="0" height="10" />;
        })}
      </svg>
      <p class="legend small">{PHASES.filter((one) => parts[one] > 0).map((one) => <span key={one}><svg width="10" height="10" aria-hidden="true" class="phases"><rect class={one} width="10" height="10" /></svg> {w.delivery.phases[one]} {duration(parts[one])}</span>)} <span>{w.delivery.total} {duration(attempt.latencyMs)}</span></p>
      {attempt.responseBody !== undefined && attempt.responseBody !== "" && <pre class="code" tabIndex={0} dir="auto">{attempt.responseBody}</pre>}
    </li>
  );
}
