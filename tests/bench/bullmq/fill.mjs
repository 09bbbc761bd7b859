// Adds no-op jobs: node fill.mjs PORT JOBS
import { Queue } from "bullmq";

const BATCH = 1000;
const [port, jobs] = process.argv.slice(2).map(Number);
const queue = new Queue("noop", { connection: { host: "127.0.0.1", port } });
// Nothing is kept of a job that ended, as in RabbitMQ.
const job = { name: "noop", data: {}, opts: { removeOnComplete: true } };

for (let added = 0; added < jobs; added += BATCH) {
  await queue.addBulk(Array(Math.min(BATCH, jobs - added)).fill(job));
}
await queue.close();
