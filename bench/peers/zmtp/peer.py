"""pyzmq for bench/zmtp.ts: one end of a pair, with the orders and answers of bench/support/zmtp-peer.ts."""

import json
import sys
import time

import zmq

role, address, length, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
types = {"receive": zmq.PULL, "send": zmq.PUSH, "echo": zmq.ROUTER, "ask": zmq.DEALER}
context = zmq.Context()
socket = context.socket(types[role])
socket.setsockopt(zmq.SNDHWM, 10_000)
socket.setsockopt(zmq.RCVHWM, 10_000)
if role in ("receive", "echo"):
    socket.bind(address.replace(":0", ":*"))
    print(json.dumps({"address": socket.getsockopt_string(zmq.LAST_ENDPOINT)}), flush=True)
else:
    socket.connect(address)

body = b"x" * length
if role == "receive":
    socket.recv()
    count, started, cpu = 0, time.perf_counter(), time.process_time()
    while len(socket.recv(copy=length <= 1024)) != 1:
        count += 1
    print(json.dumps({"count": count, "seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}))
elif role == "send":
    socket.send(body)
    count, started, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        for _ in range(100):
            socket.send(body, copy=length <= 1024)
        count += 100
    spent, cpu = time.perf_counter() - started, time.process_time() - cpu
    socket.send(b".")
    print(json.dumps({"count": count, "seconds": spent, "cpu": cpu}))
elif role == "echo":
    while True:
        frames = socket.recv_multipart()
        socket.send_multipart(frames)
        if len(frames[1]) == 1:
            break
else:
    times, started = [], time.perf_counter()
    while time.perf_counter() - started < seconds:
        asked = time.perf_counter()
        socket.send(body)
        socket.recv()
        times.append((time.perf_counter() - asked) * 1e6)
    socket.send(b".")
    socket.recv()
    print(json.dumps({"micros": times}))
socket.close()
context.term()
