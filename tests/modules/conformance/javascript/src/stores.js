// Requests to the config store and the secret store.

import { Output, request } from 'configurator-sdk';
import { AppConf, Basic, Entry, transaction, TwoLayers } from 'configurator-sdk/configstore';
import { Secret } from 'configurator-sdk/secretstore';

export function entries() {
  return new Output(
    request('get-pod', Entry.pod('shop', 'web').get()),
    request('create-node', Entry.node('node-1').create('a')),
    request('update-namespace', Entry.namespace('shop').update('b')),
    request('update-workload', Entry.workload('shop', 'StatefulSet', 'db', { uid: '4a0f' }).update('c')),
    request('delete-workload', Entry.workload('shop', 'Deployment', 'web', { uid: '77' }).delete()),
  );
}

export function appConf() {
  const level = new AppConf('web', 'log.level', { namespace: 'shop' });
  return new Output(
    request('create', new AppConf('web', 'log.level').create('info')),
    request('update', level.update('debug')),
    request('delete', level.delete()),
  );
}

export function basic() {
  return new Output(
    request('get', new Basic('region').get()),
    request('put', new Basic('region').put('north')),
    request('delete', new Basic('a/b c').delete()),
  );
}

export function twoLayers() {
  const red = new TwoLayers('teams', 'red');
  return new Output(
    request('get', red.get()),
    request('create', red.create('1')),
    request('update', red.update('2')),
    request('delete', red.delete()),
  );
}

export function allOrNothing() {
  const all = transaction(
    Entry.pod('shop', 'web').update('entry'),
    new AppConf('web', 'mode', { namespace: 'shop' }).create('fast'),
    new Basic('count').put('7'),
    new TwoLayers('teams', 'red').delete(),
  );
  return new Output(request('all', all));
}

export function secrets() {
  const db = new Secret('db');
  return new Output(
    request('get', db.get()),
    request('create', db.create()),
    request('create-with', db.createWith({ user: 'app', password: 'p"w' })),
    request('update', db.update(3)),
    request('update-with', db.updateWith(0, 'p')),
    request('delete', db.delete()),
  );
}
