import {
  type IDataObject,
  type IExecuteFunctions,
  type INodeExecutionData,
  type INodeType,
  type INodeTypeDescription,
  type JsonObject,
  NodeApiError,
  NodeConnectionTypes,
  type NodeParameterValueType,
} from "n8n-workflow";
import { PROPERTIES } from "./properties";
import { type Call, CREDENTIALS, request } from "./request";

/** Returns a field of the item; undefined where it was left empty. Of `fields`, those filled in. */
type Field = (name: string) => NodeParameterValueType | undefined;

/** What an operation calls. `inSession`: in the session of its chat, which is opened first. */
interface Operation {
  call: (field: Field) => Call;
  inSession?: boolean;
  /** The list of the answer that becomes items. */
  items?: string;
}

const OPERATIONS: Record<string, Operation> = {
  "memory.remember": {
    call: (field) => ({ method: "POST", path: "memories/", body: memoryOf(field) }),
  },
  "memory.recall": {
    call: (field) => ({
      method: "POST",
      path: "memories/recall/",
      body: {
        ...(field("fields") as IDataObject),
        query: field("query"),
        whatsapp_chat: field("whatsappChat"),
      },
    }),
    items: "results",
  },
  "memory.forget": {
    call: (field) => ({
      method: "DELETE",
      path: `memories/${encodeURIComponent(String(field("memoryId")))}/`,
    }),
  },
  "context.get": {
    call: (field) => ({
      method: "POST",
      path: "context/",
      body: { ...(field("fields") as IDataObject), query: field("query") },
    }),
    inSession: true,
  },
  "message.store": {
    call: (field) => ({
      method: "POST",
      path: "messages/",
      body: {
        messages: [{ role: field("role"), content: field("content") }],
        ...learning(field),
      },
    }),
    inSession: true,
  },
  "message.exchange": {
    call: (field) => ({
      method: "POST",
      path: "exchanges/",
      body: { query: field("query"), reply: field("reply"), ...learning(field) },
    }),
    inSession: true,
  },
  "chat.ask": {
    call: (field) => ({
      method: "POST",
      path: "chat/",
      body: { whatsapp_chat: field("whatsappChat"), content: field("content") },
    }),
  },
};

export class WhatsappMemory implements INodeType {
  description: INodeTypeDescription = {
    displayName: "WhatsApp Memory",
    name: "whatsappMemory",
    icon: "file:memory.svg",
    group: ["transform"],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: "Remember, recall and forget what people said",
    defaults: { name: "WhatsApp Memory" },
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    usableAsTool: true,
    credentials: [{ name: CREDENTIALS, required: true }],
    properties: PROPERTIES,
  };

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const made: INodeExecutionData[] = [];
    for (let item = 0; item < this.getInputData().length; item++) {
      try {
        for (const json of await answers(this, item)) made.push({ json, pairedItem: { item } });
      } catch (error) {
        if (!this.continueOnFail()) {
          throw new NodeApiError(this.getNode(), error as JsonObject, { itemIndex: item });
        }
        made.push({ json: { error: (error as Error).message }, pairedItem: { item } });
      }
    }
    return [made];
  }
}

async function answers(node: IExecuteFunctions, item: number): Promise<IDataObject[]> {
  const field: Field = (name) => {
    const given = node.getNodeParameter(name, item, "") as NodeParameterValueType;
    if (name !== "fields") return given === "" ? undefined : given;
    return Object.fromEntries(Object.entries(given || {}).filter(([, value]) => value !== ""));
  };
  const { call, inSession, items } = OPERATIONS[`${field("resource")}.${field("operation")}`];
  const asked = call(field);
  // A try of the same item again (Retry On Fail) does nothing twice.
  const run = node.evaluateExpression("{{ $runIndex }}", item);
  const key = ["n8n", node.getExecutionId(), node.getNode().id, run, item].join("-");
  if (inSession) {
    const body = { whatsapp_chat: field("whatsappChat") };
    const { session_id } = await request(node, { method: "POST", path: "sessions/", body });
    asked.path = `sessions/${session_id}/${asked.path}`;
  }
  const answer = await request(node, { ...asked, key });
  return items ? (answer[items] as IDataObject[]) : [answer];
}

/** `false` would also switch off what is remembered of promises without asking. */
function learning(field: Field): IDataObject {
  return field("learn") ? { learn: true } : {};
}

function memoryOf(field: Field): IDataObject {
  const { tags, ...fields } = field("fields") as IDataObject;
  const words = Array.isArray(tags) ? tags.map(String) : String(tags ?? "").split(",");
  const named = words.map((word) => word.trim()).filter(Boolean);
  return {
    ...fields,
    ...(named.length ? { tags: named } : {}),
    content: field("content"),
    whatsapp_chat: field("whatsappChat"),
  };
}
