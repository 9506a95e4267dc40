"""The authorization server for applications that use the MCP server in a staff member's name.

It follows OAuth 2.1, as MCP describes it. The endpoints (oauth_endpoints.py) run the handlers of
the ``mcp`` package, which check requests, redirect addresses and PKCE; provider.py gives them what
is stored (grants.py). Staff consent on a page of the admin. oauth_addresses.py names the server as
clients know it. An access token is an ApiToken that is valid at one address only.
"""
