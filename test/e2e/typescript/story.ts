// The story of a packet, lived by a client whose types are generated from the OpenAPI document:
// what compiles here is in the document. client_story_test.go is the same story in Go.
import createClient from "openapi-fetch";
import type { components, paths } from "./build/schema.js";

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is required`);
  return value;
}

const withKey = (url: string, key: string) =>
  createClient<paths>({ baseUrl: setting(url), headers: { Authorization: `Bearer ${setting(key)}` } });

const app = withKey("HONGBAO_URL", "HONGBAO_APP_KEY");
const finance = withKey("HONGBAO_STAFF_URL", "HONGBAO_FINANCE_KEY");
const finance2 = withKey("HONGBAO_STAFF_URL", "HONGBAO_FINANCE2_KEY");
const run = `typescript-${process.pid}-${Date.now()}`;

// ok returns the data of a successful answer.
function ok<T>(answer: { data?: T; error?: unknown }, what: string): T {
  if (answer.data === undefined) throw new Error(`${what}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

function check(right: boolean, what: string, seen: unknown): void {
  if (!right) throw new Error(`${what}: ${JSON.stringify(seen)}`);
}

// until reads again and again until done says so.
async function until<T>(what: string, read: () => Promise<T>, done: (value: T) => boolean): Promise<T> {
  for (const end = Date.now() + 120_000; ; ) {
    const value = await read();
    if (done(value)) return value;
    check(Date.now() < end, `not in time: ${what}`, value);
    await new Promise((next) => setTimeout(next, 200));
  }
}

const create = () =>
  app.POST("/v1/packets", {
    params: { header: { "Idempotency-Key": run } },
    body: { sender_id: "alice", total_amount: 600, share_count: 3, split: "equal" },
  });
const id = ok(await create(), "create").id;
check(ok(await create(), "create again").id === id, "a repeated create makes another packet", id);
const packet = async () => ok(await app.GET("/v1/packets/{id}", { params: { path: { id } } }), "packet");
await until("the packet is open", packet, (p) => p.status === "open");

const grab = (user_id: string) => app.POST("/v1/packets/{id}/grabs", { params: { path: { id } }, body: { user_id } });
for (const user of ["bob", "carol", "dave~declined"]) {
  const won = ok(await grab(user), `grab of ${user}`);
  const again = ok(await grab(user), `grab of ${user} again`);
  check(won.amount === 200 && !won.replayed && again.amount === 200 && again.replayed === true, user, [won, again]);
}
const late = await grab("erin");
check(late.error?.code === "sold_out", "a grab of no share", late);
const list = ok(await app.GET("/v1/packets/{id}/grabs", { params: { path: { id }, query: { limit: 10 } } }), "list of grabs");
check(list.items.length === 3 && list.next_cursor === null, "list of grabs", list);

// The provider refuses dave. Two persons of finance send his share back to alice.
const failed = await until(
  "the failed payout",
  async () => ok(await finance.GET("/v1/staff/payouts", { params: { query: { packet_id: id, status: "failed" } } }), "payouts").items,
  (items) => items.length > 0,
);
const payout: components["schemas"]["Payout"] | undefined = failed[0];
check(failed.length === 1 && payout?.user_id === "dave~declined" && payout.amount === 200, "failed payouts", failed);
const cancel = await finance.POST("/v1/staff/payouts/{id}/cancel", {
  params: { path: { id: payout!.id }, header: { "Idempotency-Key": `${run}-cancel` } },
  body: { reason: "the account is closed" },
});
const asked = ok(cancel, "cancel by one person");
check(asked.payout.status === "failed", "cancel by one person", asked);
const approve = await finance2.POST("/v1/staff/approvals/{id}/approve", {
  params: { path: { id: asked.approval!.id }, header: { "Idempotency-Key": `${run}-approve` } },
  body: { reason: "I have read her letter" },
});
check(ok(approve, "approval").decision.kind === "cancel", "cancel by two persons", approve.data);

const closed = await until("the refund", packet, (p) => p.status === "closed" && p.refunded_amount === 200);
const cancelled = ok(await finance.GET("/v1/staff/payouts/{id}", { params: { path: { id: payout!.id } } }), "payout");
check(cancelled.status === "cancelled", "the cancelled payout", cancelled);
check(closed.claimed_count === 3 && closed.fairness.seed !== null, "the closed packet", closed);
const proof = await until(
  "the proof",
  async () => ok(await app.GET("/v1/packets/{id}/proof", { params: { path: { id } } }), "proof"),
  (p) => p.balanced && p.paid === 400 && p.refunded === 200,
);
console.log(`packet ${id}: ${proof.paid} fen paid, ${proof.refunded} fen returned to alice`);
