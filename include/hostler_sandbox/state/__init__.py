"""The one state model behind the clouds' wire fronts: stock, quotas, prices, machines, faults, journal."""
