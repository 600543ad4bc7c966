"""The Responses API in terms of chat completions, and back."""
