"""What chainrule is made of. ``chainrule/README.md`` says which room holds what; nothing here is public."""
