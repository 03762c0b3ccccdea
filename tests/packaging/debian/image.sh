# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The image of the server, built by buildah on a Debian that is the least of this release, in
# a storage of its own; and the files for those who run it. To be sourced by run.

storage=()
in_image=scripts/packaging/container
engine() { buildah "${storage[@]}" "$@"; }

# What is called debian:N-slim elsewhere
import_slim() {
	local base made mounted

	base=$(scripts/root slim) &&
		made=$(engine from scratch) &&
		mounted=$(engine mount "$made") &&
		cp -a "$base/." "$mounted" &&
		engine umount "$made" &&
		engine commit --quiet --rm "$made" \
			"debian:$(. /etc/os-release && echo "$VERSION_ID")-slim"
}

# (crun needs control groups that a machine may not have.)
build_image() { BUILDAH_ISOLATION=chroot CONTAINER_ENGINE="buildah ${storage[*]}" scripts/container "$debs" 2>&1; }

# A job is put, and done by a worker; all as the image's user.
serves() {
	local made status=0

	made=$(engine from --pull-never twheeld) || return
	# shellcheck disable=SC2016 # for that shell to expand
	engine run --isolation chroot "$made" -- timeout 60 sh -ec '
		id -un
		twheeld -l unix:/tmp/socket &
		until [ -S /tmp/socket ]; do sleep 0.1; done
		perl -MIO::Socket::UNIX -e "\$s = IO::Socket::UNIX->new(Peer => q(/tmp/socket));
			print \$s qq(put 1 0 60 5\r\nhello\r\n); print scalar <\$s>"
		twheel-run -s unix:/tmp/socket sh -c "cat >/tmp/body && mv /tmp/body /tmp/done" &
		until [ -s /tmp/done ]; do sleep 0.1; done
		cat /tmp/done
		kill %2 && wait %2
		kill %1 && wait %1
		ls /var/lib/twheeld' >"$work/said" 2>&1 || status=$?
	engine rm "$made" >/dev/null
	same 0 "$status" && same twheeld "$(head -n 1 "$work/said")" && said '^INSERTED 1' &&
		said '^hello' && said jobs.db || { cat "$work/said"; return 1; }
}

manifests() {
	local modules name="Kubernetes' schema has nothing to say of kubernetes.yaml"

	if modules=$(tests/harness/npm manifests kubernetes-models@4.5.1 js-yaml@4.1.0); then
		check "$name" env NODE_PATH="$modules" node tests/packaging/debian/manifests.cjs \
			"$in_image/kubernetes.yaml"
	else
		echo "ok - $name # SKIP $modules"
	fi
}

# The tab and the configuration of both are what the server takes.
configured() {
	local folder=$work/configured

	mkdir -p "$folder" && sed "s|/etc/twheeld|$folder|" "$in_image/twheeld/twheeld.conf" \
		>"$folder/twheeld.conf" && cp "$in_image"/twheeld/*.tab "$folder" &&
		"$build/twheeld/twheeld" -t "$folder/example.tab"
}

image() {
	storage=(--root "$work/storage" --runroot "$work/storage-run" --storage-driver overlay)
	check "a Debian to begin the image with" import_slim
	check "the image is built" build_image
	check "its server, worker and command run, as its user" serves
	manifests
	check "docker-compose has nothing to say of compose.yaml" \
		docker-compose -f "$in_image/compose.yaml" config --quiet
	check "the tab of the example is right" configured
	engine rm --all >/dev/null 2>&1 || :
	engine rmi --all --force >/dev/null 2>&1 || :
}
