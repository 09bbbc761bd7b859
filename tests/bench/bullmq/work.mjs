// Runs them and prints jobs/s, counted from the last job of the warm-up: node work.mjs PORT JOBS WARM_UP
import { Worker } from "bullmq";

const [port, jobs, warmUp] = process.argv.slice(2).map(Number);
let ended = 0;
let started = 0;
let finish;
const finished = new Promise((resolve) => (finish = resolve));

async function noop() {
  ended += 1;
  if (ended === warmUp) {
    started = performance.now();
  } else if (ended === jobs) {
    finish((jobs - warmUp) / ((performance.now() - started) / 1000));
  }
}

const worker = new Worker("noop", noop, {
  concurrency: 8,
  connection: { host: "127.0.0.1", port, maxRetriesPerRequest: null },
});
worker.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
const rate = await finished;
await worker.close();
console.log(rate);
