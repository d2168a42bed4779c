"""Who sends a request, and what they may do: authentication, impersonation, RBAC, tokens, certificates."""
