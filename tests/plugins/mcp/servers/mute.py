"""A server that starts and says nothing; `python mute.py PORT` holds a connection to PORT as long as it lives."""

import os
import socket
import sys

connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(f"{os.getpid()}\n".encode())
sys.stderr.write("still loading the model\n")
sys.stderr.flush()
sys.stdin.read()
