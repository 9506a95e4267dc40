"""The MCP server: what assistants call as tools is the REST API, operation by operation.

A tool (tools.py) turns its arguments into calls of REST views within this process (rest.py), so
that scopes, bound chats, throttles, checks, errors and the audit log are those of the API and
exist once. Its schemas are made of the API's serializers (schemas.py). server.py makes the
package's server for one token; it is spoken to over HTTP (view.py, bridge.py) and over stdio
(the command ``mcp_server``).
"""
