#!/usr/bin/env python3
"""A service that is no JavaScript: SOAP 1.1 (and 1.2) over HTTP with nothing but Python's standard library.

The node manager starts it, says in SOA_LISTEN_URL where to listen, and takes "the port accepts" for "ready".
It ends by SIGTERM: what is in progress is answered, then it exits 0.
"""
import os
import signal
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit
from xml.parsers import expat

SOAP11 = 'http://schemas.xmlsoap.org/soap/envelope/'
SOAP12 = 'http://www.w3.org/2003/05/soap-envelope'
WSA = 'http://www.w3.org/2005/08/addressing'
NS = 'urn:soa-broker:prime-factors'
ARRAYS = 'http://schemas.microsoft.com/2003/10/Serialization/Arrays'
ACTION = NS + '/IPrimeFactors/Factor'
MAX_BYTES = 65536
MAX_DEPTH = 32
LONG_MAX = 2 ** 63 - 1


class SoapError(Exception):
    """A fault for the client; `code` in the words of SOAP 1.2."""

    def __init__(self, code, reason, status=500):
        super().__init__(reason)
        self.code, self.status = code, status


def read_request(data):
    """Envelope -> (version, MessageID, local name of the body element, its children's texts). Names come with their namespaces as 'uri name'."""
    path, texts, found = [], {}, {}

    def refuse(*_):
        raise SoapError('Sender', 'a document type is not accepted', 400)

    def start(name, attributes):
        path.append(name)
        if len(path) > MAX_DEPTH:
            raise SoapError('Sender', 'nested deeper than %d levels' % MAX_DEPTH)
        if len(path) == 1:
            found['version'] = name.partition(' ')[0]
            if name not in (SOAP11 + ' Envelope', SOAP12 + ' Envelope'):
                raise SoapError('VersionMismatch', 'the envelope is neither SOAP 1.1 nor SOAP 1.2')
        elif len(path) == 3 and path[1].endswith(' Header'):
            version = found['version']
            understood = name.startswith((WSA + ' ', 'http://www.microsoft.com/hpc '))
            if attributes.get(version + ' mustUnderstand') in ('1', 'true') and not understood:
                raise SoapError('MustUnderstand', 'header %s is not known here' % name)
        elif len(path) == 3 and path[1].endswith(' Body'):
            found['element'] = name
        texts.setdefault(tuple(path), '')

    def end(_):
        path.pop()

    def text(value):
        key = tuple(path)
        if key in texts:
            texts[key] += value

    parser = expat.ParserCreate(namespace_separator=' ')
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    # Entities can only be declared in a document type: refusing it refuses them all.
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise SoapError('Sender', 'no XML: %s' % error, 400) from None
    version = found['version']
    inside = {key[3]: value for key, value in texts.items() if len(key) == 4 and key[1] == version + ' Body'}
    message_id = texts.get((version + ' Envelope', version + ' Header', WSA + ' MessageID'))
    return version, message_id, found.get('element'), inside


def factors(number):
    """Prime factors in ascending order, by trial division; seconds for the largest 64-bit primes."""
    result = []
    for prime in (2, 3, 5):
        while number % prime == 0:
            result.append(prime)
            number //= prime
    # Numbers not divisible by 2, 3 or 5 lie at these distances.
    steps, step, candidate = (4, 2, 4, 2, 4, 6, 2, 6), 0, 7
    while candidate * candidate <= number:
        if number % candidate == 0:
            result.append(candidate)
            number //= candidate
        else:
            candidate += steps[step]
            step = (step + 1) % 8
    if number > 1:
        result.append(number)
    return result


def escape(text):
    return text.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')


def envelope(version, action, message_id, body):
    headers = ''
    if message_id or version == SOAP12:
        headers = '<a:Action xmlns:a="%s">%s</a:Action>' % (WSA, action)
        if message_id:
            headers += '<a:RelatesTo xmlns:a="%s">%s</a:RelatesTo>' % (WSA, escape(message_id.strip()))
    return '<s:Envelope xmlns:s="%s"><s:Header>%s</s:Header><s:Body>%s</s:Body></s:Envelope>' % (version, headers, body)


def fault(version, message_id, error):
    reason = escape(str(error))
    if version == SOAP12:
        body = '<s:Fault><s:Code><s:Value>s:%s</s:Value></s:Code><s:Reason><s:Text xml:lang="en">%s</s:Text></s:Reason></s:Fault>' % (error.code, reason)
    else:
        code = {'Sender': 'Client', 'Receiver': 'Server'}.get(error.code, error.code)
        body = '<s:Fault><faultcode>s:%s</faultcode><faultstring>%s</faultstring></s:Fault>' % (code, reason)
    return envelope(version, WSA + '/soap/fault', message_id, body)


def described(error):
    """The exception's type and message, without its traceback, in 2 KiB at most."""
    return ('%s: %s' % (type(error).__name__, error))[:2048]


def answer(data):
    """Bytes of a request -> (status, version, text of the reply)."""
    version, message_id = SOAP11, None
    try:
        version, message_id, element, inside = read_request(data)
        if element != NS + ' Factor':
            raise SoapError('Sender', 'there is no operation that takes %s' % (element or 'an empty body'))
        try:
            number = int(inside[NS + ' number'])
        except (KeyError, ValueError):
            raise SoapError('Sender', 'number is missing or no whole number') from None
        if not 1 <= number <= LONG_MAX:
            raise SoapError('Sender', 'number must be from 1 to %d' % LONG_MAX)
        items = ''.join('<b:long>%d</b:long>' % factor for factor in factors(number))
        body = '<FactorResponse xmlns="%s"><FactorResult xmlns:b="%s">%s</FactorResult></FactorResponse>' % (NS, ARRAYS, items)
        return 200, version, envelope(version, ACTION + 'Response', message_id, body)
    except SoapError as error:
        if error.code == 'VersionMismatch':
            version = SOAP11
        return error.status, version, fault(version, message_id, error)
    except Exception as error:
        # The client learns what it was, the node's log (by stderr) where. Without an answer the broker would take it for a lost call and try again.
        traceback.print_exc()
        return 500, version, fault(version, message_id, SoapError('Receiver', described(error)))


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    timeout = 300  # seconds that a connection may stay silent
    wbufsize = -1  # a reply leaves in one piece

    def do_POST(self):
        length = self.headers.get('Content-Length')
        if length is None or not length.isdigit() or int(length) > MAX_BYTES:
            status, version, text = 500, SOAP11, fault(SOAP11, None, SoapError('Sender', 'the length must be given, up to %d bytes' % MAX_BYTES))
            self.close_connection = True
        else:
            self.server.began()
            try:
                status, version, text = answer(self.rfile.read(int(length)))
                self.reply(status, version, text)
                return
            finally:
                self.server.ended()
        self.reply(status, version, text)

    def reply(self, status, version, text):
        data = text.encode()
        self.send_response(status)
        self.send_header('Content-Type', 'text/xml; charset=utf-8' if version == SOAP11 else 'application/soap+xml; charset=utf-8')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_):
        pass  # a line per call would drown the node manager's log


class Server(ThreadingHTTPServer):
    daemon_threads = True  # silent connections do not keep the process
    request_queue_size = 128

    def __init__(self, address):
        self.calls, self.changed = 0, threading.Condition()
        super().__init__(address, Handler)

    def began(self):
        with self.changed:
            self.calls += 1

    def ended(self):
        with self.changed:
            self.calls -= 1
            self.changed.notify_all()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def main():
    url = urlsplit(os.environ.get('SOA_LISTEN_URL', ''))
    if not url.hostname or not url.port:
        sys.exit('prime_factors: SOA_LISTEN_URL must be http://host:port/…')
    server = Server((url.hostname, url.port))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stop.wait()
    server.shutdown()
    grace = float(os.environ.get('CCP_CANCEL_TASK_GRACEPERIOD', '15'))
    deadline = time.monotonic() + grace
    with server.changed:
        while server.calls and time.monotonic() < deadline:
            server.changed.wait(0.1)
    server.server_close()


if __name__ == '__main__':
    main()
