"""DynamicResources: devices for pods that claim them; see `plugin`."""
