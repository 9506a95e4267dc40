/** What n8n gives to a node, over real HTTP to the server. */
import { randomUUID } from "node:crypto";
import type { IDataObject, IHttpRequestOptions, INode } from "n8n-workflow";
import { WhatsappMemoryApi } from "../credentials/WhatsappMemoryApi.credentials";

export const url = process.env.MEMORY_URL ?? "";
export const token = process.env.MEMORY_TOKEN ?? "";

export interface Given {
  parameters: IDataObject[];
  continueOnFail?: boolean;
  executionId?: string;
  token?: string;
  staticData?: IDataObject;
  webhookUrl?: string;
}

/** Return the `this` of a node's functions; `parameters`: one object for each item. */
export function functions(given: Given): any {
  const node: INode = {
    id: "node-1",
    name: "Memory",
    type: "whatsappMemory",
    typeVersion: 1,
    position: [0, 0],
    parameters: {},
  };
  const executionId = given.executionId ?? randomUUID();
  const get = (parameters: IDataObject, name: string, otherwise: unknown) =>
    parameters[name] ?? otherwise;
  const isHook = given.staticData !== undefined;
  return {
    getNode: () => node,
    getWorkflow: () => ({ id: "w1", name: "Tests", active: true }),
    getInputData: () => given.parameters.map((json) => ({ json })),
    getNodeParameter: (name: string, item: any, otherwise: unknown) =>
      isHook ? get(given.parameters[0], name, item) : get(given.parameters[item], name, otherwise),
    getCredentials: async () => ({ baseUrl: `${url}/`, token: given.token ?? token }),
    getExecutionId: () => executionId,
    getWorkflowStaticData: () => given.staticData,
    getNodeWebhookUrl: () => given.webhookUrl,
    evaluateExpression: () => 0,
    continueOnFail: () => given.continueOnFail ?? false,
    helpers: {
      returnJsonArray: (items: IDataObject[]) => items.map((json) => ({ json })),
      httpRequestWithAuthentication: (_: string, options: IHttpRequestOptions) =>
        send(options, given.token ?? token),
    },
  };
}

async function send(options: IHttpRequestOptions, token: string) {
  const headers = new WhatsappMemoryApi().authenticate.properties.headers as Record<string, string>;
  const authorization = headers.Authorization.slice(1).replace("{{$credentials.token}}", token);
  const response = await fetch(options.url, {
    method: options.method,
    headers: {
      ...(options.headers as Record<string, string>),
      "Content-Type": "application/json",
      Authorization: authorization,
    },
    body: options.body === undefined ? undefined : JSON.stringify(options.body),
  });
  const text = await response.text();
  return { statusCode: response.status, body: text ? JSON.parse(text) : undefined };
}
