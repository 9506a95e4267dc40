import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import {
  type IHookFunctions,
  type INodeType,
  type INodeTypeDescription,
  type IWebhookFunctions,
  type IWebhookResponseData,
  type JsonObject,
  NodeApiError,
  NodeConnectionTypes,
} from "n8n-workflow";
import { CREDENTIALS, request } from "./request";

const TOLERANCE_SECONDS = 300;
const EVENTS = [
  "card.made",
  "chat.erased",
  "document.forgotten",
  "handover.requested",
  "memory.changed",
  "memory.created",
  "memory.forgotten",
  "message.forgotten",
  "message.received",
  "rule.matched",
  "session.expired",
  "session.forgotten",
  "turn.answered",
  "turn.degraded",
  "turn.failed",
];

/** What is kept of the endpoint between two runs. */
interface Kept {
  endpointId?: string;
  secret?: string;
  /** What it was made with, as JSON. */
  wanted?: string;
}

export class WhatsappMemoryTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: "WhatsApp Memory Trigger",
    name: "whatsappMemoryTrigger",
    icon: "file:memory.svg",
    group: ["trigger"],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: "Starts when the memory server reports an event",
    defaults: { name: "WhatsApp Memory Trigger" },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: CREDENTIALS, required: true }],
    webhooks: [
      { name: "default", httpMethod: "POST", responseMode: "onReceived", path: "webhook" },
    ],
    properties: [
      {
        displayName: "Events",
        name: "events",
        type: "multiOptions",
        options: EVENTS.map((value) => ({ name: value, value })),
        default: [],
        description: "Which events start the workflow. Empty: all.",
      },
      {
        displayName: "Chats",
        name: "chats",
        type: "string",
        default: "",
        placeholder: "15550100123@c.us",
        description: "Whose events, separated by commas. Empty: those of all chats.",
      },
    ],
  };

  webhookMethods = {
    default: {
      async checkExists(this: IHookFunctions): Promise<boolean> {
        const kept: Kept = this.getWorkflowStaticData("node");
        if (!kept.endpointId) return false;
        const endpoint = await found(this, kept.endpointId);
        if (endpoint?.enabled && kept.secret && kept.wanted === JSON.stringify(wanted(this))) {
          return true;
        }
        await remove(this);
        return false;
      },

      async create(this: IHookFunctions): Promise<boolean> {
        const kept: Kept = this.getWorkflowStaticData("node");
        const body = wanted(this);
        // A workflow that runs may be tested at the same time, with an endpoint of its own.
        const name = `n8n ${this.getWorkflow().id ?? ""} ${randomBytes(4).toString("hex")}`;
        const path = "webhooks/endpoints/";
        const made = await request(this, { method: "POST", path, body: { name, ...body } });
        kept.endpointId = made.endpoint_id as string;
        kept.secret = made.secret as string;
        kept.wanted = JSON.stringify(body);
        return true;
      },

      async delete(this: IHookFunctions): Promise<boolean> {
        return await remove(this);
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const { secret } = this.getWorkflowStaticData("node") as Kept;
    const { rawBody } = this.getRequestObject();
    const headers = this.getHeaderData() as Record<string, string | undefined>;
    if (!secret || !rawBody || !isSigned(rawBody, headers, secret)) {
      this.getResponseObject().status(401).end();
      return { noWebhookResponse: true };
    }
    // The id stays the same when an event is posted again.
    const event = { id: headers["webhook-id"], ...JSON.parse(rawBody.toString()) };
    return { workflowData: [this.helpers.returnJsonArray([event])] };
  }
}

/** Return what the endpoint should be told, and where. */
function wanted(node: IHookFunctions) {
  const chats = (node.getNodeParameter("chats", "") as string).split(",");
  const named = chats.map((chat) => chat.trim()).filter(Boolean);
  return {
    url: node.getNodeWebhookUrl("default"),
    event_types: node.getNodeParameter("events", []) as string[],
    ...(named.length ? { whatsapp_chats: named } : {}),
  };
}

function isGone(error: unknown): boolean {
  return error instanceof NodeApiError && error.httpCode === "404";
}

async function found(node: IHookFunctions, endpointId: string) {
  try {
    return await request(node, { method: "GET", path: `webhooks/endpoints/${endpointId}/` });
  } catch (error) {
    if (isGone(error)) return null;
    throw new NodeApiError(node.getNode(), error as JsonObject);
  }
}

/** Remove the endpoint at the server. False if that can't be done now. */
async function remove(node: IHookFunctions): Promise<boolean> {
  const kept: Kept = node.getWorkflowStaticData("node");
  if (kept.endpointId) {
    try {
      await request(node, { method: "DELETE", path: `webhooks/endpoints/${kept.endpointId}/` });
    } catch (error) {
      if (!isGone(error)) return false;
    }
  }
  for (const name of ["endpointId", "secret", "wanted"] as const) delete kept[name];
  return true;
}

/** Return whether the memory server signed the body, by Standard Webhooks. */
export function isSigned(
  body: Buffer,
  headers: Record<string, string | undefined>,
  secret: string,
  now = Date.now() / 1000,
): boolean {
  const {
    "webhook-id": id,
    "webhook-timestamp": sentAt = "",
    "webhook-signature": proofs,
  } = headers;
  if (!id || !proofs || !/^\d{1,12}$/.test(sentAt)) return false;
  if (Math.abs(now - Number(sentAt)) > TOLERANCE_SECONDS) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (!key.length) return false;
  const right = createHmac("sha256", key).update(`${id}.${sentAt}.`).update(body).digest();
  return proofs.split(" ").some((proof) => {
    const given = Buffer.from(proof.slice(3), "base64");
    return (
      proof.startsWith("v1,") && given.length === right.length && timingSafeEqual(given, right)
    );
  });
}
