"""Built networks: plan, engine file, engine, execution context, inspector."""
