"""A whole centre under kill -9: clients with a journal, something that kills, and a checker that reads the stores."""
