"""Calls an rpc/literal service (Depot.config) through zeep as it comes: python3 zeep_rpc.py URL. Prints JSON: {binding: {what: answer}}."""
import decimal
import json
import sys

import zeep
from zeep.exceptions import Fault

client = zeep.Client(sys.argv[1])
data = '{urn:depot:data}'
line = client.get_type(data + 'Line')
order = client.get_type(data + 'Order')
square = client.get_type(data + 'Square')


def calls(depot):
    """Every operation, arguments by name and in any order; what Python makes of the answers, as text."""
    placed = depot.place(rush=True, order=order(id=9007199254740993, customer='Größe', lines=[line(sku='bolt & nut', quantity=2, price=decimal.Decimal('0.10'))]))
    found = {
        'add': depot.add(2, 40),
        'add by name': depot.add(b=-2, a=1),
        'place': [str(placed.receipt.orderId), placed.receipt.remark, str(placed.total)],
        'sum': depot.sum({'item': [1, 2, 3]}),
        'sum of none': depot.sum({'item': []}),
        'touch': depot.touch('k'),
        'note': depot.note(line='l', level='LOW'),
        'grow': depot.grow(square(label='s', side=2.0), 1.5).side,
    }
    stock = depot.stock()
    found['stock'] = [stock.level, [[one.sku, one.quantity] for one in stock['items']]]
    for what, call in (('typed fault', lambda: depot.place(order(id=5, customer='C', lines=[]), False)), ('bug', lambda: depot.touch('nothing'))):
        try:
            found[what] = call()
        except Fault as fault:
            found[what] = [fault.message, None if fault.detail is None else [[one.tag, one.text] for one in fault.detail.iter() if len(one) == 0 and one is not fault.detail]]
    return found


answers = {}
for service in client.wsdl.services.values():
    for port in service.ports.values():
        answers[type(port.binding).__name__] = calls(client.bind(service.name, port.name))
print(json.dumps(answers))
