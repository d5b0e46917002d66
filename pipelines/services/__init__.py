"""Services outside: protocols that stages see, and what asks for them."""
