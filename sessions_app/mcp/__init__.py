"""The MCP server: its tools call the operations of the REST API.

A tool (tools.py) converts its arguments to calls of REST views in this process (rest.py). So
scopes, bound chats, throttles, validation, errors and the audit log are those of the API and
exist only once. The schemas come from the API's serializers (arguments.py). server.py creates the
server of the ``mcp`` package for one token; clients reach it over HTTP (view.py) and over stdio
(the command ``mcp_server``).
"""
