// Keys, links, version.
import { Page } from "../parts/basics";
import { setShortcuts, shortcuts } from "../session";
import { w } from "../words/en";

declare const VERSION: string;
declare const LICENCES: string;

export function KeyList() {
  return (
    <table class="keys">
      <caption class="hidden">{w.help.keys}</caption>
      <tbody>
        {w.help.keyList.map(([keys, text]) => (
          <tr key={text}><th scope="row">{keys.split(" ").map((key, at) => <span key={at}><kbd>{key}</kbd> </span>)}</th><td>{text}</td></tr>
        ))}
      </tbody>
    </table>
  );
}

export function Help() {
  return (
    <Page title={w.help.title}>
      <section class="block">
        <h2>{w.help.keys}</h2>
        <p><label class="choice"><input type="checkbox" checked={shortcuts.value} onChange={(event) => setShortcuts(event.currentTarget.checked)} /> {w.help.keysOn}</label></p>
        <KeyList />
      </section>
      <section class="block">
        <h2>{w.help.more}</h2>
        <ul>
          <li><a href="../docs">{w.help.docs}</a></li>
          <li><a href="../openapi.yaml">openapi.yaml</a></li>
          <li><a href={LICENCES}>{w.help.licences}</a></li>
        </ul>
        <p class="faint">{w.help.version} {VERSION}</p>
      </section>
    </Page>
  );
}
