// Does an operator's work through the generated types: node typescript_client.ts URL TOKEN CERTIFICATE
// CERTIFICATE: PEM to seal secrets with. Writes what it was answered as one JSON object.
import createClient from "openapi-fetch";
import type { components, paths } from "./gateway.d.ts";

declare const process: { argv: string[] };

const INFO = "64a8bfa9-7772-45c4-9d1a-9e6290690957";
const EDGE_STATUS = "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75";
const HELM_CHART = "eb2eb6d7-8bd8-44f0-94f3-b1adc8491837";
const NOBODY = "00000000-0000-4000-8000-000000000000";
const VALUE = new Uint8Array([0, 10, 13, 127, 128, 255]);

const [baseUrl, token, certificate] = process.argv.slice(2);
const gateway = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

type Problem = components["schemas"]["Problem"];

function codeOf(problem: Problem | undefined): string | undefined {
  return problem?.code;
}

async function createCluster() {
  const { data } = await gateway.POST("/v1/cluster", {
    params: { header: { "Idempotency-Key": "typescript-1" } },
    body: { name: "typescript", labels: { language: "typescript" } },
  });
  return data!;
}

async function putSecret(cluster: string) {
  const status: components["schemas"]["EdgeStatus"] = { hosts: [{ hostname: "node-1" }], kubeseal_cert: certificate };
  await gateway.PUT("/v1/app/{app}/object/{object_uuid}", {
    params: { path: { app: EDGE_STATUS, object_uuid: cluster } },
    body: status,
  });
  const { response } = await gateway.PUT("/v1/cluster/{uuid}/secret/{namespace}/{name}/{key}", {
    params: {
      path: { uuid: cluster, namespace: "default", name: "typescript", key: "bytes" },
      header: { "Idempotency-Key": "typescript-2" },
    },
    headers: { "Content-Type": "application/octet-stream" },
    body: VALUE,
    bodySerializer: (bytes) => bytes,
  });
  return { status: response.status, commit: response.headers.get("Edgewright-Commit") };
}

async function writeConditionally() {
  const { data: object } = await gateway.POST("/v1/object", { body: { class: HELM_CHART } });
  const path = { app: INFO, object_uuid: object!.uuid };
  const write = async (name: string, header: { "If-Match"?: string; "If-None-Match"?: string }) => {
    const { response, error } = await gateway.PUT("/v1/app/{app}/object/{object_uuid}", {
      params: { path, header },
      body: { name },
    });
    return { status: response.status, code: codeOf(error), revision: response.headers.get("ETag") ?? "" };
  };
  const first = await write("press", { "If-None-Match": "*" });
  const second = await write("pump", { "If-Match": first.revision });
  const late = await write("late", { "If-Match": first.revision });
  const { data: entry } = await gateway.GET("/v1/app/{app}/object/{object_uuid}", { params: { path } });
  return { statuses: [first.status, second.status, late.status], late: late.code, entry };
}

async function readProblem() {
  const { error, response } = await gateway.GET("/v1/cluster/{uuid}", { params: { path: { uuid: NOBODY } } });
  return { status: error?.status, code: codeOf(error), named: error?.request_id === response.headers.get("X-Request-Id") };
}

async function pageThroughTimeline(cluster: string) {
  const kinds: components["schemas"]["EventKind"][] = [];
  let after: number | null | undefined;
  do {
    const { data } = await gateway.GET("/v1/cluster/{uuid}/timeline", {
      params: { path: { uuid: cluster }, query: { limit: 1, ...(after ? { after } : {}) } },
    });
    kinds.push(...data!.items.map((event) => event.kind));
    after = data!.next;
  } while (after);
  return kinds;
}

async function hearFirstEvent(cluster: string) {
  const { data } = await gateway.GET("/v1/events", { params: { query: { cluster: [cluster], after: 0 } }, parseAs: "stream" });
  let text = "";
  for await (const chunk of data!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const line = text.match(/^data: (.+)\r?\n/m);
    if (line) return (JSON.parse(line[1]) as components["schemas"]["Event"]).kind;
  }
}

const { uuid, name, labels, chart } = await createCluster();
const answers = {
  created: { uuid, name, labels, chart },
  secret: await putSecret(uuid),
  conditional: await writeConditionally(),
  problem: await readProblem(),
  timeline: await pageThroughTimeline(uuid),
  firstEvent: await hearFirstEvent(uuid),
};
console.log(JSON.stringify(answers));
