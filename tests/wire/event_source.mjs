// Listens as a browser does, with `onmessage` alone: node event_source.mjs URL TOKEN
// Writes one JSON line for each thing that happens: {"opened": true}, or {"heard": {id, position, kind}}.
// Ends when its standard input does.
import { EventSource } from "eventsource";

const [url, token] = process.argv.slice(2);
const source = new EventSource(url, {
  fetch: (input, options) =>
    fetch(input, { ...options, headers: { ...options.headers, Authorization: `Bearer ${token}` } }),
});
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
source.onopen = () => say({ opened: true });
source.onmessage = (event) => {
  const { position, kind } = JSON.parse(event.data);
  say({ heard: { id: Number(event.lastEventId), position, kind } });
};
process.stdin.on("end", () => process.exit()).resume(); // the library's own timer keeps no process alive
