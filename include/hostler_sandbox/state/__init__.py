"""The state model that all wire fronts share: stock, quotas, prices, machines and their life. It knows no cloud's words."""
