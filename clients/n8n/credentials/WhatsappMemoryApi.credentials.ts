import type {
  IAuthenticateGeneric,
  Icon,
  ICredentialTestRequest,
  ICredentialType,
  INodeProperties,
} from "n8n-workflow";

export class WhatsappMemoryApi implements ICredentialType {
  name = "whatsappMemoryApi";
  displayName = "WhatsApp Memory API";
  icon: Icon = "file:../nodes/WhatsappMemory/memory.svg";
  properties: INodeProperties[] = [
    {
      displayName: "Base URL",
      name: "baseUrl",
      type: "string",
      default: "http://127.0.0.1:8000",
      description: "Address of the memory server",
      required: true,
    },
    {
      displayName: "Token",
      name: "token",
      type: "string",
      typeOptions: { password: true },
      default: "",
      description: "Made under Settings → API tokens, or by manage.py create_api_token",
      required: true,
    },
  ];
  authenticate: IAuthenticateGeneric = {
    type: "generic",
    properties: { headers: { Authorization: "=Bearer {{$credentials.token}}" } },
  };
  test: ICredentialTestRequest = {
    request: { baseURL: "={{$credentials.baseUrl}}", url: "/api/v1/me/" },
  };
}
