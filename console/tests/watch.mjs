// What every page is held to: no error on the console, no violation of the policy, nothing asked of another origin, and
// each request to the API as openapi.yaml describes it.
import assert from "node:assert/strict";
import Ajv from "ajv";
import { parse } from "yaml";

/** The gateway's own: what is tested and what it is held against are of one build. */
let description;
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
const compiled = new Map();

export async function describe(url) {
  description = parse(await (await fetch(`${url}/openapi.yaml`)).text());
}

export const requests = new Map();

/** OpenAPI 3.0 says `nullable` where JSON Schema says another type. */
function schema(node) {
  if (Array.isArray(node)) {
    return node.map(schema);
  }
  if (node === null || typeof node !== "object") {
    return node;
  }
  if (typeof node.$ref === "string") {
    return schema(resolve(node));
  }
  const { nullable, example, examples, default: _, ...rest } = node;
  const plain = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, schema(value)]));
  return nullable ? { anyOf: [plain, { type: "null" }] } : plain;
}

function resolve(node) {
  return node?.$ref ? resolve(node.$ref.slice(2).split("/").reduce((found, key) => found[key], description)) : node;
}

function validate(key, node, value) {
  if (!compiled.has(key)) {
    compiled.set(key, ajv.compile(schema(node)));
  }
  const check = compiled.get(key);
  return check(value) ? [] : check.errors.map((error) => `${error.instancePath} ${error.message}`);
}

function template(path) {
  for (const [spelled, item] of Object.entries(description.paths)) {
    const pattern = new RegExp(`^${spelled.replace(/[.]/g, "\\.").replace(/\{\w+\}/g, "([^/:]+)")}$`);
    const match = pattern.exec(path);
    if (match) {
      const names = [...spelled.matchAll(/\{(\w+)\}/g)].map((one) => one[1]);
      return { spelled, item, values: Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1])])) };
    }
  }
  return undefined;
}

function plainValue(text, node) {
  const type = resolve(node)?.type;
  return type === "integer" || type === "number" ? Number(text) : type === "boolean" ? text === "true" : text;
}

/** What is wrong with a request, by the description; nothing, when nothing is. */
export function faults({ method, url, body, status, answer }) {
  const { pathname, searchParams } = new URL(url);
  const found = template(pathname);
  if (!found) {
    return [`no such path: ${pathname}`];
  }
  const operation = found.item[method.toLowerCase()];
  if (!operation) {
    return [`no ${method} of ${found.spelled}`];
  }
  const parameters = [...(found.item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve);
  const wrong = [];
  for (const [name, text] of [...searchParams, ...Object.entries(found.values)]) {
    const parameter = parameters.find((one) => one.name === name && one.in !== "header");
    wrong.push(...(parameter ? validate(`parameter ${parameter.in} ${name} ${JSON.stringify(parameter.schema)}`, parameter.schema, plainValue(text, parameter.schema)).map((fault) => `${name}: ${fault}`) : [`no parameter ${name}`]));
  }
  for (const { name, required, in: place } of parameters) {
    if (required && place === "query" && !searchParams.has(name)) {
      wrong.push(`lacks ${name}`);
    }
  }
  const wanted = resolve(operation.requestBody)?.content?.["application/json"]?.schema;
  if (body !== undefined) {
    wrong.push(...(wanted ? validate(`${method} ${found.spelled}`, wanted, JSON.parse(body)).map((fault) => `body ${fault}`) : ["a body where none is taken"]));
  }
  if (status !== undefined) {
    const response = resolve(operation.responses[String(status)]);
    const shape = response?.content?.["application/json"]?.schema;
    if (!response) {
      wrong.push(`answered ${status}, which is not described`);
    } else if (shape && answer !== undefined) {
      wrong.push(...validate(`${method} ${found.spelled} ${status}`, shape, JSON.parse(answer)).map((fault) => `answer ${fault}`));
    }
  }
  return wrong;
}

/** Watches a page from before it is loaded. `expected` are faults that the test makes on purpose. */
export async function watch(page, origin) {
  const seen = { errors: [], violations: [], foreign: [], expected: [] };
  await page.exposeFunction("violated", (text) => { seen.violations.push(text); });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => { window.violated(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`); });
  });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") {
      seen.errors.push(`${message.text()} ${message.location().url}`);
    }
  });
  page.on("pageerror", (error) => seen.errors.push(String(error.stack)));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin && !request.url().startsWith("blob:")) {
      seen.foreign.push(request.url());
    }
  });
  page.on("response", async (response) => {
    const request = response.request();
    const url = request.url();
    if (!new URL(url).pathname.startsWith("/v1/")) {
      return;
    }
    const answer = await response.text().catch(() => undefined);
    const made = { method: request.method(), url, body: request.postData() ?? undefined, status: response.status(), answer: answer || undefined };
    requests.set(`${made.method} ${new URL(url).pathname.replace(/[0-7][0-9a-z]{25}/g, "*")} ${[...new URL(url).searchParams.keys()].sort()} ${made.status}`, made);
  });
  seen.check = () => {
    const errors = seen.errors.filter((text) => !seen.expected.some((one) => one.test(text)));
    assert.deepEqual(errors, [], "errors on the console");
    assert.deepEqual(seen.violations, [], "violations of the policy");
    assert.deepEqual(seen.foreign, [], "requests to other origins");
  };
  return seen;
}
