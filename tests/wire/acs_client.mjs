// Calls methods of ACS's own service client: node acs_client.mjs URL USER PASSWORD.
// Reads one JSON request per line, {"of": interface, "call": method, "with": arguments}; writes one answer for each:
// {"returned": value} or {"threw": {message, status}}.
import readline from "node:readline";
import { ServiceClient } from "@amrc-factoryplus/service-client";

const [url, username, password] = process.argv.slice(2);
const client = new ServiceClient({ directory_url: url, configdb_url: url, username, password });

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const target = client[request.of];
  let answer;
  try {
    answer = { returned: await target[request.call](...request.with) };
  } catch (error) {
    answer = { threw: { message: String(error.message ?? error), status: error.status } };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
process.exit();
