// Requests to Kubernetes.

import { Output, request } from 'configurator-sdk';
import {
  CONFIG_MAP,
  CRON_JOB,
  DAEMON_SET,
  DEPLOYMENT,
  JOB,
  NAMESPACE,
  NODE,
  POD,
  REPLICA_SET,
  Resource,
  SECRET,
  SERVICE,
  STATEFUL_SET,
} from 'configurator-sdk/kubernetes';

const WIDGET = new Resource('example.com', 'v1beta1', 'widgets', 'Widget');

function configMap(name) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'shop', name }, data: { key: 'value' } };
}

export function reads() {
  const selected = { labels: 'app=web,tier!=cache', fields: 'status.phase=Running', cached: true };
  return new Output(
    request('get', POD.get('shop', 'web')),
    request('get-cached', NODE.get('', 'node-1', { cached: true })),
    request('get-scale', DEPLOYMENT.get('shop', 'web', { subresource: 'scale' })),
    request('list', POD.list('shop')),
    request('list-selected', POD.list('', selected)),
  );
}

export function writes() {
  const widget = {
    apiVersion: WIDGET.apiVersion,
    kind: 'Widget',
    metadata: { namespace: 'shop', name: 'w' },
    status: { ready: true },
  };
  return new Output(
    request('create', CONFIG_MAP.create('shop', 'a', configMap('a'))),
    request('create-new', CONFIG_MAP.create('shop', 'b', configMap('b'), { mustNotExist: true })),
    request('replace', CONFIG_MAP.replace('shop', 'c', configMap('c'), { uid: '4a0f', resourceVersion: '17' })),
    request('apply', CONFIG_MAP.apply('shop', 'd', configMap('d'))),
    request('apply-status', WIDGET.apply('shop', 'w', widget, { force: true, subresource: 'status', uid: '77' })),
  );
}

export function patches() {
  const merge = { data: { key: null } };
  const json = [{ op: 'add', path: '/data/new', value: '1' }];
  const strategic = { spec: { template: { spec: { containers: [{ name: 'web', image: 'web:2' }] } } } };
  const status = { status: { replicas: 0 } };
  return new Output(
    request('merge', CONFIG_MAP.patch('shop', 'a', merge)),
    request('json-patch', CONFIG_MAP.patch('shop', 'a', json, { patchType: 'json-patch', resourceVersion: '9' })),
    request('strategic', DEPLOYMENT.patch('shop', 'web', strategic, { patchType: 'strategic', uid: '4a0f' })),
    request('status', DEPLOYMENT.patch('shop', 'web', status, { patchType: 'merge', subresource: 'status' })),
  );
}

export function deletes() {
  return new Output(
    request('delete', POD.delete('shop', 'web')),
    request('foreground', DEPLOYMENT.delete('shop', 'web', { propagation: 'foreground' })),
    request('orphan', DEPLOYMENT.delete('shop', 'old', { propagation: 'orphan', uid: '4a0f' })),
    request('background', NAMESPACE.delete('', 'shop', { propagation: 'background', resourceVersion: '3' })),
  );
}

export function types() {
  const every = [
    POD,
    NODE,
    NAMESPACE,
    CONFIG_MAP,
    SECRET,
    SERVICE,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    JOB,
    CRON_JOB,
    WIDGET,
  ];
  return new Output(...every.map((one) => request(one.kind, one.get('shop', 'one'))));
}
