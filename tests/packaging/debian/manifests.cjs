// SPDX-License-Identifier: GPL-2.0
//
// manifests FILE: is each document of it what Kubernetes' schema of its kind says? And must the
// schema be asked at all: a field that no kind has is found.
const fs = require('fs');
const yaml = require('js-yaml');

const places = { v1: 'v1', 'apps/v1': 'apps/v1' };

function check(one) {
	const kinds = require(`kubernetes-models/${places[one.apiVersion]}/${one.kind}`);

	new kinds[one.kind](one).validate();
}

const all = yaml.loadAll(fs.readFileSync(process.argv[2], 'utf8'));
for (const one of all)
	check(one);
console.log(`${all.length} objects: ${all.map(one => one.kind).join(' ')}`);

const wrong = all.find(one => one.kind === 'Deployment');
wrong.spec.replicas = 'two';
try {
	check(wrong);
} catch {
	process.exit(all.length > 3 ? 0 : 1);
}
console.log('the schema takes what is wrong');
process.exit(1);
