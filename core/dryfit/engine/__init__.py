"""The built thing: plan, engine file, engine, execution context, inspector."""
