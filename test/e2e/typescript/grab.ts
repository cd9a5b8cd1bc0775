// Creates a packet and grabs from it with a client whose types are generated
// from the OpenAPI document: what compiles here is what the document promises.
import createClient from "openapi-fetch";
import type { paths } from "./build/schema.js";

const baseUrl = process.env.HONGBAO_URL;
const key = process.env.HONGBAO_APP_KEY;
if (!baseUrl || !key) throw new Error("HONGBAO_URL and HONGBAO_APP_KEY are required");

const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const created = await api.POST("/v1/packets", {
  params: { header: { "Idempotency-Key": `typescript-${process.pid}-${Date.now()}` } },
  body: { sender_id: "alice", total_amount: 300, share_count: 1 },
});
if (!created.data) throw new Error(`create: ${JSON.stringify(created.error)}`);
const id: string = created.data.id;

const won = await api.POST("/v1/packets/{id}/grabs", { params: { path: { id } }, body: { user_id: "bob" } });
if (!won.data) throw new Error(`grab: ${won.error.code}`);
const amount: number = won.data.amount;
if (amount !== 300 || won.data.replayed) throw new Error(`grab: ${JSON.stringify(won.data)}`);

const late = await api.POST("/v1/packets/{id}/grabs", { params: { path: { id } }, body: { user_id: "carol" } });
if (late.error?.code !== "sold_out") throw new Error(`second grab: ${JSON.stringify(late)}`);

const list = await api.GET("/v1/packets/{id}/grabs", { params: { path: { id }, query: { limit: 10 } } });
if (list.data?.items.length !== 1 || list.data.items[0]?.user_id !== "bob") throw new Error("list of grabs");
console.log(`bob won ${amount} fen of packet ${id}`);
