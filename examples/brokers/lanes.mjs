// Urgent requests overtake all others that wait, whichever client sent them, also after a restart.
import { CustomBroker } from 'soa-broker/broker'

export default class Lanes extends CustomBroker {
  onRequest ({ userData = '' }) {
    return { lane: userData.startsWith('urgent') ? 1 : 0 }
  }
}
