/** One call of the memory server, with the credentials of the node. */
import {
  type IDataObject,
  type IExecuteFunctions,
  type IHookFunctions,
  type IHttpRequestMethods,
  NodeApiError,
} from "n8n-workflow";

export const CREDENTIALS = "whatsappMemoryApi";

export interface Call {
  method: IHttpRequestMethods;
  /** Below `/api/v1/`. */
  path: string;
  body?: IDataObject;
  /** The server does nothing twice under one key. */
  key?: string;
}

/** Return what the server answers. Throws NodeApiError with the server's words. */
export async function request(
  node: IExecuteFunctions | IHookFunctions,
  { method, path, body, key }: Call,
): Promise<IDataObject> {
  const { baseUrl } = await node.getCredentials<{ baseUrl: string }>(CREDENTIALS);
  const { statusCode, body: answer } = await node.helpers.httpRequestWithAuthentication.call(
    node,
    CREDENTIALS,
    {
      method,
      url: `${baseUrl.replace(/\/+$/, "")}/api/v1/${path}`,
      headers: key === undefined ? {} : { "Idempotency-Key": key },
      body,
      json: true,
      returnFullResponse: true,
      ignoreHttpStatusErrors: true,
    },
  );
  if (statusCode >= 200 && statusCode < 300) return answer || {};
  // A proxy in front of the server answers with a text.
  const errors: { code: string; detail: string; attr: string | null }[] = answer?.errors ?? [];
  const [first] = errors;
  throw new NodeApiError(node.getNode(), first ? answer : {}, {
    httpCode: String(statusCode),
    message: first ? `${first.attr ? `${first.attr}: ` : ""}${first.detail}` : `HTTP ${statusCode}`,
    description: first?.code,
  });
}
