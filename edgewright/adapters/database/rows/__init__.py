"""What is read and written within somebody's transaction; ports are kept by the packages beside this one."""
