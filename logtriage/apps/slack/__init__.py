"""The Slack bot: questions about jobs come in, verdicts go out, and what people say of them is learned."""
