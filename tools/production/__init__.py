"""The topology of ``docker-compose.yml`` as processes of this machine: every program in it is the real one."""
