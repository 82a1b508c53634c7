// Shows the gateway's openapi.json by Swagger UI, with a line of curl for each operation.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

/** The last part of a `$ref`'d object, or the object itself. */
function resolve(description, value) {
  if (!value || !value.$ref) {
    return value;
  }
  return value.$ref.slice(2).split("/").reduce((node, key) => node[key], description);
}

/** As a word that a shell takes as it is. */
function quoted(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

function example(media) {
  if (!media) {
    return undefined;
  }
  const first = media.examples && Object.values(media.examples)[0];
  return first ? first.value : media.example;
}

/** A value to show for a parameter. */
function sample(description, parameter) {
  const schema = resolve(description, parameter.schema);
  return parameter.example ?? schema.example ?? parameter.name;
}

/** How to call an operation from a shell, with `$API` and `$KEY` as docs/guides/rest-api.md has them. */
function curl(description, path, item, method, operation) {
  const parameters = [...(item.parameters || []), ...(operation.parameters || [])]
    .map((parameter) => resolve(description, parameter));
  const words = ["curl"];
  const open = operation.security && operation.security.length === 0;
  if (!open) {
    words.push('-H "Authorization: Bearer $KEY"');
  }
  if (!["get", "post"].includes(method)) {
    words.push(`-X ${method.toUpperCase()}`);
  }
  const body = operation.requestBody && resolve(description, operation.requestBody);
  if (body) {
    const [type, media] = Object.entries(body.content)[0];
    const value = example(media);
    words.push(`-H 'Content-Type: ${type}'`, `-d ${quoted(JSON.stringify(value === undefined ? {} : value))}`);
  } else if (method === "post") {
    words.push("-X POST");
  }
  const query = parameters.filter((parameter) => parameter.in === "query"
    && (parameter.required || (method === "get" && parameter.example !== undefined)));
  if (query.length > 0) {
    const given = (parameter) => quoted(`${parameter.name}=${sample(description, parameter)}`);
    words.push("-G", ...query.map((parameter) => `--data-urlencode ${given(parameter)}`));
  }
  const url = path.replace(/\{(\w+)\}/g, (_, name) => {
    return sample(description, parameters.find((one) => one.in === "path" && one.name === name));
  });
  // `$API` ends in `/v1`, as in the guides.
  words.push(url.startsWith("/v1/") ? `"$API${url.slice(3)}"` : `"\${API%/v1}${url}"`);
  return words.join(" \\\n  ");
}

function addCurl(description) {
  for (const [path, item] of Object.entries(description.paths)) {
    for (const method of METHODS.filter((method) => item[method])) {
      const operation = item[method];
      const line = curl(description, path, item, method, operation);
      operation.description = `${operation.description || ""}\n\n\`\`\`sh\n${line}\n\`\`\`\n`;
    }
  }
}

async function show() {
  const answer = await fetch("openapi.json");
  if (!answer.ok) {
    throw new Error(`openapi.json: ${answer.status}`);
  }
  const description = await answer.json();
  // Also where the gateway stands behind a path of its own.
  const here = new URL(".", document.baseURI).href.replace(/\/$/, "");
  description.servers = [{ url: here }];
  addCurl(description);
  description.info.description += `\n### Examples\nLines of curl suppose \`API=${here}/v1\` and your key in \`KEY\`.\n`;
  window.SwaggerUIBundle({
    spec: description,
    dom_id: "#docs",
    deepLinking: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
  });
}

show().catch((error) => {
  document.getElementById("docs").textContent = `The description cannot be shown: ${error.message}`;
});
