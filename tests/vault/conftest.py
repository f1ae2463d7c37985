from hypothesis import settings

# A busy machine is slow, not wrong: no limit on the time of one example.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
