throw new Error('no licence for this machine')
