"""libzmq for the tests: does what JSON lines on standard input say, and answers each with a line.

A frame is told as [length, fill]: `length` bytes that `fill` decides (see frame_of), so that large ones need no pipe. A
received frame is answered as [length, digest].
"""

import hashlib
import json
import sys

import zmq


def frame_of(length, fill):
    block = bytes((i * 31 + fill) & 255 for i in range(256))
    return (block * (length // 256 + 1))[:length]


def told(frame):
    return [len(frame), hashlib.sha1(frame).hexdigest()]


context = zmq.Context()
sockets = {}


def open_socket(type, options):
    """A new socket; gives nothing. Option values are numbers, or hexadecimal text for bytes."""
    socket = context.socket(getattr(zmq, type))
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.LINGER, 5000)
    for name, value in options.items():
        socket.setsockopt(getattr(zmq, name), bytes.fromhex(value) if isinstance(value, str) else value)
    return socket


def received(socket, count, timeout_ms):
    messages = []
    while len(messages) < count and socket.poll(timeout_ms):
        messages.append([told(frame) for frame in socket.recv_multipart()])
    return messages


def echo(socket, count, timeout_ms):
    done = 0
    while done < count and socket.poll(timeout_ms):
        socket.send_multipart(socket.recv_multipart(copy=False), copy=False)
        done += 1
    return done


def obey(order):
    do, name = order["do"], order["socket"]
    if do == "open":
        sockets[name] = open_socket(order["type"], order["options"])
        return None
    socket = sockets[name]
    if do == "bind":
        socket.bind(order["address"])
        return socket.getsockopt_string(zmq.LAST_ENDPOINT)
    if do == "connect":
        socket.connect(order["address"])
        return None
    if do == "send":
        for frames in order["messages"]:
            socket.send_multipart([frame_of(*frame) for frame in frames])
        return None
    if do == "send_hex":
        return socket.send_multipart([bytes.fromhex(frame) for frame in order["frames"]])
    if do == "receive":
        return received(socket, order["count"], order["timeoutMs"])
    if do == "echo":
        return echo(socket, order["count"], order["timeoutMs"])
    if do == "close":
        sockets.pop(name).close()
        return None
    raise ValueError(do)


for line in sys.stdin:
    print(json.dumps(obey(json.loads(line))), flush=True)
for socket in sockets.values():
    socket.close(linger=0)
context.term()
