/** What the node asks for in the editor. */
import type { IDisplayOptions, INodeProperties } from "n8n-workflow";

/** Show a field for these operations, given as `resource.operation`. */
function shownFor(...operations: string[]): IDisplayOptions {
  const names = operations.map((each) => each.split("."));
  return {
    show: {
      resource: [...new Set(names.map(([resource]) => resource))],
      operation: [...new Set(names.map(([, operation]) => operation))],
    },
  };
}

const text = { type: "string", default: "" } as const;

export const PROPERTIES: INodeProperties[] = [
  {
    displayName: "Resource",
    name: "resource",
    type: "options",
    noDataExpression: true,
    options: [
      { name: "Chat", value: "chat" },
      { name: "Context", value: "context" },
      { name: "Memory", value: "memory" },
      { name: "Message", value: "message" },
    ],
    default: "memory",
  },
  {
    displayName: "Operation",
    name: "operation",
    type: "options",
    noDataExpression: true,
    displayOptions: { show: { resource: ["chat"] } },
    options: [
      {
        name: "Ask",
        value: "ask",
        action: "Ask in a chat",
        description: "Say something in a chat and get the server's answer",
      },
    ],
    default: "ask",
  },
  {
    displayName: "Operation",
    name: "operation",
    type: "options",
    noDataExpression: true,
    displayOptions: { show: { resource: ["context"] } },
    options: [
      {
        name: "Get",
        value: "get",
        action: "Get a context",
        description: "Get the messages to send to a model of your own",
      },
    ],
    default: "get",
  },
  {
    displayName: "Operation",
    name: "operation",
    type: "options",
    noDataExpression: true,
    displayOptions: { show: { resource: ["memory"] } },
    options: [
      {
        name: "Forget",
        value: "forget",
        action: "Forget a memory",
        description: "Erase a memory with every copy of it",
      },
      {
        name: "Recall",
        value: "recall",
        action: "Recall memories",
        description: "Retrieve what is relevant to a question",
      },
      {
        name: "Remember",
        value: "remember",
        action: "Remember a fact",
        description: "Store a fact",
      },
    ],
    default: "remember",
  },
  {
    displayName: "Operation",
    name: "operation",
    type: "options",
    noDataExpression: true,
    displayOptions: { show: { resource: ["message"] } },
    options: [
      {
        name: "Store",
        value: "store",
        action: "Store a message",
        description: "Store a message in the session of a chat",
      },
      {
        name: "Store Exchange",
        value: "exchange",
        action: "Store an exchange",
        description: "Store a question with the answer of a model of your own",
      },
    ],
    default: "store",
  },
  {
    ...text,
    displayName: "Chat",
    name: "whatsappChat",
    required: true,
    placeholder: "15550100123@c.us",
    description: "Whose conversation it is; one of your own ends in @external",
    displayOptions: shownFor("chat.ask", "context.get", "message.store", "message.exchange"),
  },
  {
    ...text,
    displayName: "Chat",
    name: "whatsappChat",
    placeholder: "15550100123@c.us",
    description: "Whose memory it is. Empty: the owner's, who sees all.",
    displayOptions: shownFor("memory.remember", "memory.recall"),
  },
  {
    ...text,
    displayName: "Memory ID",
    name: "memoryId",
    required: true,
    displayOptions: shownFor("memory.forget"),
  },
  {
    ...text,
    displayName: "Content",
    name: "content",
    required: true,
    typeOptions: { rows: 3 },
    displayOptions: shownFor("memory.remember", "message.store", "chat.ask"),
  },
  {
    ...text,
    displayName: "Query",
    name: "query",
    required: true,
    description: "The question",
    displayOptions: shownFor("message.exchange", "memory.recall"),
  },
  {
    ...text,
    displayName: "Query",
    name: "query",
    description: "The question. Empty: the last message of the session.",
    displayOptions: shownFor("context.get"),
  },
  {
    ...text,
    displayName: "Reply",
    name: "reply",
    required: true,
    displayOptions: shownFor("message.exchange"),
  },
  {
    displayName: "Role",
    name: "role",
    type: "options",
    options: ["assistant", "system", "user"].map((value) => ({
      name: value[0].toUpperCase() + value.slice(1),
      value,
    })),
    default: "user",
    displayOptions: shownFor("message.store"),
  },
  {
    displayName: "Learn",
    name: "learn",
    type: "boolean",
    default: false,
    description: "Whether facts are learned from what people say",
    displayOptions: shownFor("message.store", "message.exchange"),
  },
  {
    displayName: "Additional Fields",
    name: "fields",
    type: "collection",
    placeholder: "Add Field",
    default: {},
    options: [
      { ...text, displayName: "Category", name: "category" },
      { displayName: "Expires At", name: "expires_at", type: "dateTime", default: "" },
      { displayName: "Pinned", name: "pinned", type: "boolean", default: false },
      { ...text, displayName: "Tags", name: "tags", description: "Separated by commas" },
      { ...text, displayName: "Type", name: "type", placeholder: "fact" },
      {
        displayName: "Visibility",
        name: "visibility",
        type: "options",
        options: ["chat", "owner", "public"].map((value) => ({
          name: value[0].toUpperCase() + value.slice(1),
          value,
        })),
        default: "chat",
      },
    ],
    displayOptions: shownFor("memory.remember"),
  },
  {
    displayName: "Additional Fields",
    name: "fields",
    type: "collection",
    placeholder: "Add Field",
    default: {},
    options: [
      {
        displayName: "Limit",
        name: "top_k",
        type: "number",
        default: 5,
        typeOptions: { minValue: 1, maxValue: 100 },
        description: "Max number of results to return",
      },
      {
        displayName: "Minimum Score",
        name: "min_similarity",
        type: "number",
        default: 0.7,
        typeOptions: { minValue: 0, maxValue: 1, numberPrecision: 2 },
      },
      { ...text, displayName: "Type", name: "type", description: "Only memories of this type" },
    ],
    displayOptions: shownFor("memory.recall"),
  },
  {
    displayName: "Additional Fields",
    name: "fields",
    type: "collection",
    placeholder: "Add Field",
    default: {},
    options: [
      { displayName: "Max Tokens", name: "max_tokens", type: "number", default: 4000 },
      {
        displayName: "Persona",
        name: "persona",
        type: "boolean",
        default: true,
        description: "Whether the context begins with who the server's assistant is",
      },
      {
        ...text,
        displayName: "System",
        name: "system",
        description: "Your own instructions, which stand first",
      },
    ],
    displayOptions: shownFor("context.get"),
  },
];
