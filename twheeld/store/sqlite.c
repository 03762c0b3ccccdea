// SPDX-License-Identifier: GPL-2.0
/*
 * The store: a SQLite database, jobs.db. Opening, its schema, and what the event loop reads.
 *
 * There are two connections: the committer's, which alone writes, and the one here. In WAL mode
 * neither waits for the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/runs.h"
#include "store/sqlite.h"
#include "store/trace_rows.h"

#define APPLICATION_ID 0x74776a64
/* Bytes by which the database's file grows at a time */
#define PIECE (64 << 10)
/* In the names of the copy of a store that was gone, and of the file that says what to do */
#define RESCUED ".rescued"
#define GONE ".gone"
/* A killed server's child may keep its lock for a moment, until it has closed its descriptors. */
#define LOCK_TRIES 100
#define LOCK_PAUSE_US 20000

static char *path;
static enum sync sync_mode;
static sqlite3 *db;
/* Never closed: that would drop all locks that SQLite has on the file. */
static int file;
/* The store's files, as they were when the server began to write */
static struct part {
	const char *suffix;
	char *name;
	dev_t device;
	ino_t inode;
} parts[] = { { .suffix = "" }, { .suffix = "-wal" }, { .suffix = "-shm" } };

/* upgrades[N] makes a store of version N + 1 of one of version N; 0 is an empty one. */
static const char *const upgrades[] = {
	"CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE tubes(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
	" ready INTEGER NOT NULL, delayed INTEGER NOT NULL, buried INTEGER NOT NULL,"
	" urgent INTEGER NOT NULL);"
	"CREATE TABLE jobs(id INTEGER PRIMARY KEY, tube INTEGER NOT NULL,"
	" state INTEGER NOT NULL, ord INTEGER NOT NULL, pri INTEGER NOT NULL,"
	" delay INTEGER NOT NULL, ttr INTEGER NOT NULL, created INTEGER NOT NULL,"
	" reserves INTEGER NOT NULL, timeouts INTEGER NOT NULL, releases INTEGER NOT NULL,"
	" buries INTEGER NOT NULL, kicks INTEGER NOT NULL, body BLOB NOT NULL);"
	"CREATE INDEX jobs_in_order ON jobs(tube, state, ord);"
	"CREATE INDEX jobs_due ON jobs(ord) WHERE state = 1;",
	/* Set where no two jobs of the tube may have the same body */
	"ALTER TABLE jobs ADD COLUMN digest INTEGER;"
	"CREATE INDEX jobs_unique ON jobs(tube, digest) WHERE digest IS NOT NULL;",
	/* result is a number of enum result: below 2, the job is still there. */
	"CREATE TABLE schedules(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
	" digest INTEGER NOT NULL, next INTEGER NOT NULL, paused INTEGER NOT NULL,"
	" gone INTEGER NOT NULL, since INTEGER NOT NULL);"
	"CREATE TABLE runs(schedule INTEGER NOT NULL, time INTEGER NOT NULL,"
	" shard INTEGER NOT NULL, job INTEGER NOT NULL, result INTEGER NOT NULL,"
	" created INTEGER NOT NULL, ended INTEGER NOT NULL,"
	" PRIMARY KEY(schedule, time, shard)) WITHOUT ROWID;"
	"CREATE INDEX runs_open ON runs(schedule) WHERE result = 0;"
	"CREATE INDEX runs_job ON runs(job) WHERE result < 2;"
	"CREATE INDEX runs_over ON runs(time) WHERE result >= 2;",
	/* Runs wait, too: to an older server, such a row would be one that is open. */
	"",
	/* What became of tries. Their deeds are those of enum deed. */
	TRACES_TABLE
	"ALTER TABLE runs ADD COLUMN count INTEGER NOT NULL DEFAULT 1;"
	"ALTER TABLE jobs ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;"
	"UPDATE jobs SET scheduled = 1 WHERE id IN (SELECT job FROM runs WHERE result < 2"
	" AND job > 0);",
	/* The tube from which a job came to the dead letters */
	"ALTER TABLE jobs ADD COLUMN origin TEXT;"
	"CREATE INDEX jobs_back ON jobs(tube) WHERE origin IS NOT NULL;",
	/* Of a job with a key, digest is the key's, a BLOB. Keys that are taken for a time: */
	"CREATE TABLE keys(tube TEXT NOT NULL, key BLOB NOT NULL, until INTEGER NOT NULL,"
	" job INTEGER NOT NULL, PRIMARY KEY(tube, key)) WITHOUT ROWID;"
	"CREATE INDEX keys_until ON keys(until);",
	"ALTER TABLE jobs ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;",
	/* failing: the next run that is done is a recovery; scheduled: a schedule's number */
	"ALTER TABLE schedules ADD COLUMN failing INTEGER NOT NULL DEFAULT 0;"
	"UPDATE jobs SET scheduled = ifnull((SELECT schedule FROM runs WHERE job = jobs.id"
	" AND result < 2), scheduled) WHERE scheduled = 1;",
};

#define VERSIONS ARRAY_SIZE(upgrades)

/* Small bodies come with the row. length() does not read the body. */
#define COLUMNS "id, tube, state, ord, pri, delay, ttr, created, reserves, timeouts," \
	" releases, buries, kicks, length(body), CASE WHEN length(body) <= 2048 THEN body END," \
	" scheduled, tries"

_Static_assert(SMALL_BODY == 2048, "what COLUMNS says");

/* A tube without jobs */
#define EMPTY "ready = 0 AND delayed = 0 AND buried = 0"

static sqlite3_stmt *get_job, *get_body, *get_tube, *same_ord, *next_ord, *same_due, *next_due,
	*get_runs, *get_open, *get_traces, *get_letter;

static void run(const char *sql)
{
	char *why = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		die("%s: %s", path, why ? why : sqlite3_errmsg(db));
}

static sqlite3 *open_database(void)
{
	sqlite3 *new;

	if (sqlite3_open_v2(path, &new, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
			    SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		die("%s: %s", path, new ? sqlite3_errmsg(new) : "out of memory");
	sqlite3_extended_result_codes(new, 1);
	sqlite3_busy_timeout(new, 5000);
	return new;
}

/*
 * Debian's SQLite overwrites deleted data with zeros. So a delete would write as much to the log as
 * the put, for which a full disk may have no room. FAST overwrites only where that takes no more
 * I/O.
 */
static void set_up(sqlite3 *new)
{
	static const char *const synchronous[] = {
		[SYNC_ALWAYS] = "FULL", [SYNC_SOMETIMES] = "NORMAL", [SYNC_NEVER] = "OFF",
	};
	char sql[300];

	snprintf(sql, sizeof(sql), "PRAGMA journal_mode = WAL; PRAGMA synchronous = %s;"
		 "PRAGMA cache_size = -8000; PRAGMA secure_delete = FAST;"
		 "PRAGMA journal_size_limit = 67108864;", synchronous[sync_mode]);
	if (sqlite3_exec(new, sql, NULL, NULL, NULL) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(new));
}

/** sqlite_connect - make and set up another connection */
sqlite3 *sqlite_connect(void)
{
	sqlite3 *new = open_database();

	set_up(new);
	return new;
}

static int64_t ask(const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t value = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	if (sqlite3_finalize(stmt) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
	return value;
}

/* The version whose tables the store has; 0: it has none */
static int64_t version_of_tables(void)
{
	if (ask("SELECT count(*) FROM sqlite_schema WHERE name IN ('meta', 'tubes', 'jobs')") != 3)
		return 0;
	if (ask("SELECT count(*) FROM pragma_table_info('schedules') WHERE name = 'failing'"))
		return 9;
	if (ask("SELECT count(*) FROM pragma_table_info('jobs') WHERE name = 'tries'"))
		return 8;
	if (ask("SELECT count(*) FROM sqlite_schema WHERE name = 'keys'"))
		return 7;
	if (ask("SELECT count(*) FROM pragma_table_info('jobs') WHERE name = 'origin'"))
		return 6;
	if (ask("SELECT count(*) FROM sqlite_schema WHERE name = 'tries'"))
		return 5;
	if (ask("SELECT count(*) FROM sqlite_schema WHERE name = 'runs'"))
		return 3;
	return ask("SELECT count(*) FROM pragma_table_info('jobs') WHERE name = 'digest'") ? 2 : 1;
}

/* A copy by sqlite3's .dump lacks both numbers, application_id and user_version. */
__attribute__((noreturn)) static void die_of_others(void)
{
	int64_t version = version_of_tables();

	if (!version)
		die("%s is another program's database", path);
	die("%s has the tables of a store, but not its mark, as what .dump has written: if that is"
	    " what it is, mark it with: sqlite3 %s 'PRAGMA application_id = %d; PRAGMA user_version"
	    " = %lld'. (VACUUM INTO makes copies that need no mark)", path, path, APPLICATION_ID,
	    (long long)version);
}

/* Look before anything is changed: another program's database keeps even its journal mode. */
static int64_t check_ours(void)
{
	int64_t version = ask("PRAGMA user_version");

	if (version > (int64_t)VERSIONS)
		die("%s is of a newer twheeld (version %lld, this one knows %zu): use that one",
		    path, (long long)version, VERSIONS);
	if ((version == 0 && ask("SELECT count(*) FROM sqlite_schema") != 0) ||
	    (version && ask("PRAGMA application_id") != APPLICATION_ID))
		die_of_others();
	if (version < 0)
		die("%s is damaged: its version is %lld", path, (long long)version);
	return version;
}

static void upgrade(int64_t version)
{
	char sql[100];

	if (version == (int64_t)VERSIONS)
		return;
	run("BEGIN IMMEDIATE");
	while (version < (int64_t)VERSIONS)
		run(upgrades[version++]);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %lld; PRAGMA application_id = %d;",
		 (long long)version, APPLICATION_ID);
	run(sql);
	run("COMMIT");
}

/** sqlite_prepare - prepare a statement that stays; ends the program if that fails */
sqlite3_stmt *sqlite_prepare(sqlite3 *on, const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v3(on, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(on));
	return stmt;
}

/**
 * sqlite_step - do a statement; gives false, having complained, if that fails
 *
 * SQLite says of the disk only that it has an error. The kernel's own word is still in errno.
 */
bool sqlite_step(sqlite3_stmt *stmt)
{
	int ret, number;

	errno = 0;
	ret = sqlite3_step(stmt);
	number = (ret & 0xff) == SQLITE_IOERR ? errno : 0;
	if (ret != SQLITE_DONE)
		commit_say("the store can't be written: %s", number ? strerror(number) :
			   sqlite3_errmsg(sqlite3_db_handle(stmt)));
	sqlite3_reset(stmt);
	return ret == SQLITE_DONE;
}

static void prepare_all(void)
{
	get_job = sqlite_prepare(db, "SELECT " COLUMNS " FROM jobs WHERE id = ?1");
	get_body = sqlite_prepare(db, "SELECT body FROM jobs WHERE id = ?1");
	get_tube = sqlite_prepare(db, "SELECT id FROM tubes WHERE name = ?1");
	/*
	 * In two steps, as an index is not used for (ord, id) > (?, ?) where id is the rowid:
	 * it would read all jobs of the same priority again each time.
	 */
	same_ord = sqlite_prepare(db, "SELECT " COLUMNS " FROM jobs INDEXED BY jobs_in_order"
				  " WHERE tube = ?1"
				  " AND state = ?2 AND ord = ?3 AND id > ?4 ORDER BY id");
	next_ord = sqlite_prepare(db, "SELECT " COLUMNS " FROM jobs INDEXED BY jobs_in_order"
				  " WHERE tube = ?1 AND state = ?2 AND ord > ?3 ORDER BY ord, id");
	same_due = sqlite_prepare(db, "SELECT " COLUMNS " FROM jobs INDEXED BY jobs_due WHERE"
				  " state = 1 AND ord = ?1 AND id > ?2 ORDER BY id");
	next_due = sqlite_prepare(db, "SELECT " COLUMNS " FROM jobs INDEXED BY jobs_due WHERE"
				  " state = 1 AND ord > ?1 AND ord <= ?2 ORDER BY ord, id");
	get_letter = sqlite_prepare(db, "SELECT id, origin FROM jobs INDEXED BY jobs_back WHERE"
				    " tube = ?1 AND origin IS NOT NULL AND id > ?2 ORDER BY id"
				    " LIMIT 1");
	get_runs = sqlite_prepare(db, "SELECT time, shard, job, result, created, ended, count"
				  " FROM runs"
				  " WHERE schedule = ?1 ORDER BY time DESC, shard DESC LIMIT ?2");
	get_open = sqlite_prepare(db, "SELECT time, shard, job, result, created, ended, count"
				  " FROM runs INDEXED BY runs_open"
				  " WHERE schedule = ?1 AND result = 0 ORDER BY time, shard LIMIT 1");
	get_traces = sqlite_prepare(db, "SELECT traces FROM tries WHERE "
				    TRACES_BEHIND(TRACE_SPAN) " AND first <= ?1");
}

static char *in_folder(const char *dir, const char *name)
{
	char *all;

	if (asprintf(&all, "%s/%s", dir, name) < 0)
		must(NULL);
	return all;
}

/*
 * Only one server may have a store. The lock belongs to the process, not to the descriptor: a
 * killed server starts again at once, and a child of it (aside.c) must not keep the lock
 * meanwhile.
 */
static void take_lock(const char *dir)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *name = in_folder(dir, "lock");
	int fd;

	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die("%s: %s. It must be a folder that may be written to; -b DIR is another one",
		    name, strerror(errno));
	if (fcntl(fd, F_SETLK, &lock) < 0) {
		if (errno != EAGAIN && errno != EACCES)
			die("%s can't be locked: %s", name, strerror(errno));
		die("%s: another twheeld uses this folder", dir);
	}
	free(name);
}

/*
 * Until somebody has mended a store that was gone, begin no other in its place, and take none for
 * it: systemd starts the server again within a second.
 */
static void look_for_mark(const char *dir)
{
	char *mark = in_folder(dir, "jobs.db" GONE), what[1000];
	FILE *file = fopen(mark, "re");

	if (!file && errno != ENOENT)
		die("%s: %s", mark, strerror(errno));
	if (file && !fgets(what, sizeof(what), file))
		strcpy(what, "the store was gone");
	if (file)
		die("%.*s. Then remove %s", (int)strcspn(what, "\n"), what, mark);
	free(mark);
}

/*
 * Where the store's files were removed under a server, no other one gets the folder: the server
 * that has it says first what became of the store. A child may have the descriptor for a moment.
 */
static void lock_folder(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return;
		usleep(LOCK_PAUSE_US);
	}
	if (errno != EWOULDBLOCK)
		die("%s can't be locked: %s", dir, strerror(errno));
	die("%s: another twheeld uses this folder", dir);
}

/* The name of a file system that is on another machine, or NULL. Its kind: linux/magic.h */
static const char *other_machine(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs) < 0)
		return NULL;
	switch ((uint32_t)fs.f_type) {
	case NFS_SUPER_MAGIC:
		return "NFS";
	case SMB_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
		return "SMB";
	case AFS_SUPER_MAGIC:
	case AFS_FS_MAGIC:
		return "AFS";
	case CEPH_SUPER_MAGIC:
		return "Ceph";
	default:
		return NULL;
	}
}

/* Complain about a file system of another machine: SQLite's readers share memory. */
static void look_where(const char *dir)
{
	const char *kind = other_machine(dir);

	if (kind)
		complain("%s is on another machine (%s): nothing there, or on a third one, may open"
			 " the store, not to read it either; and acknowledged jobs are as safe as"
			 " that machine says. A disk of this one, or a database, is better", dir,
			 kind);
}

static bool rewrite(int fd)
{
	static char piece[1 << 16];
	ssize_t got, done;

	/* After a write of less than all, the next one says why. */
	for (off_t at = 0; (got = pread(fd, piece, sizeof(piece), at)) > 0; at += done) {
		done = pwrite(fd, piece, got, at);
		if (done <= 0)
			return false;
	}
	return got == 0 && fdatasync(fd) == 0;
}

/*
 * Bring a log that is there to the disk. When a sync has failed, Linux takes pages for clean that
 * it could not write. A server that starts then would read them, and append to them, and a power
 * failure would cut off all of that. So the whole log is written once more.
 */
static void settle_log(const char *dir)
{
	char *name = in_folder(dir, "jobs.db-wal");
	int fd = open(name, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && !rewrite(fd)) {
		if (errno != ENOSPC)
			die("%s can't be read and written back: %s. Look at the disk", name,
			    strerror(errno));
		complain("%s: %s", name, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	free(name);
}

/* A killed server may have left tubes without jobs. They do no harm where the disk is too full. */
static void forget_empty_tubes(void)
{
	if (sqlite3_exec(db, "DELETE FROM tubes WHERE " EMPTY, NULL, NULL, NULL) != SQLITE_OK)
		complain("%s can't be written: %s", path, sqlite3_errmsg(db));
}

/**
 * sqlite_open - open the store; ends the program if it can't be
 * @dir: its folder, which must be there
 * @sync: how often the disk is synced
 */
void sqlite_open(const char *dir, enum sync sync)
{
	int64_t version;

	/* SQLite's count of bytes, which nobody reads, would take a lock for each allocation. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	take_lock(dir);
	lock_folder(dir);
	look_where(dir);
	umask(077);
	path = in_folder(dir, "jobs.db");
	look_for_mark(dir);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		die("%s: %s", path, strerror(errno));
	settle_log(dir);
	sync_mode = sync;
	db = open_database();
	version = check_ours();
	set_up(db);
	upgrade(version);
	forget_empty_tubes();
	prepare_all();
}

/** sqlite_watch - note which files are the store, for sqlite_gone() */
void sqlite_watch(void)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (asprintf(&parts[i].name, "%s%s", path, parts[i].suffix) < 0)
			must(NULL);
		if (stat(parts[i].name, &st) < 0)
			die("%s: %s", parts[i].name, strerror(errno));
		parts[i].device = st.st_dev;
		parts[i].inode = st.st_ino;
	}
}

/* Is the file elsewhere? False also if it can't be looked at. */
static bool is_elsewhere(const struct part *part)
{
	struct stat st;

	if (stat(part->name, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != part->device || st.st_ino != part->inode;
}

/**
 * sqlite_gone - was the store removed, renamed or replaced?
 *
 * Writes would go where nobody looks for them; SQLite says so in its error log alone.
 */
bool sqlite_gone(void)
{
	static bool gone;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (__atomic_load_n(&gone, __ATOMIC_RELAXED))
			return true;
		if (is_elsewhere(&parts[i]) && !__atomic_exchange_n(&gone, true, __ATOMIC_RELAXED))
			complain("%s was removed, renamed or replaced under the server: nothing"
				 " more is acknowledged, and it ends", parts[i].name);
	}
	return __atomic_load_n(&gone, __ATOMIC_RELAXED);
}

/* A new name for a copy: earlier copies are left alone. */
static char *new_name(void)
{
	char *name = must(sqlite3_mprintf("%s" RESCUED, path));

	for (int i = 2; access(name, F_OK) == 0; i++) {
		sqlite3_free(name);
		name = must(sqlite3_mprintf("%s" RESCUED ".%d", path, i));
	}
	return name;
}

/* Bring the file to the disk, and close it; gives false, with errno, if that fails. */
static bool synced(int fd)
{
	bool fine = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return fine;
}

static bool sync_folder(void)
{
	char *dir = must(strdup(path));
	bool fine;

	*strrchr(dir, '/') = '\0';
	fine = synced(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	free(dir);
	return fine;
}

/* Say in the log what to do, and keep it for the next start, also after a power failure. */
__attribute__((format(printf, 1, 2)))
static void leave_mark(const char *format, ...)
{
	char what[1000], *name = must(sqlite3_mprintf("%s" GONE, path));
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t length;
	bool fine;
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	complain("%s", what);
	length = strlen(what);
	fine = fd >= 0 && write(fd, what, length) == length;
	if (!synced(fd) || !sync_folder() || !fine)
		complain("%s can't be written: do that before anything starts the server", name);
	sqlite3_free(name);
}

static void copy_to(sqlite3 *db, const char *name)
{
	char *sql = must(sqlite3_mprintf("VACUUM INTO %Q", name));

	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK) {
		leave_mark("%s was removed under the server, and its acknowledged jobs are in %s:"
			   " make that jobs.db, alone in its folder", path, name);
	} else {
		complain("%s can't be written, and acknowledged jobs are lost: %s", name,
			 sqlite3_errmsg(db));
		unlink(name);
	}
	sqlite3_free(sql);
}

/**
 * sqlite_rescue - say where the jobs of a store are that is gone, now and at the next start
 * @db: a connection to the store
 *
 * A file without a name is gone for good once it is closed: so it is copied. If the database itself
 * is still in its place, its log is not needed any more.
 */
void sqlite_rescue(sqlite3 *db)
{
	struct stat st;
	char *name;

	if (!is_elsewhere(&parts[0]))
		return;
	if (fstat(file, &st) < 0 || st.st_nlink) {
		leave_mark("%s was renamed or replaced under the server, and its acknowledged jobs"
			   " are in the old one: put that into the folder again, alone",
			   path);
		return;
	}
	name = new_name();
	copy_to(db, name);
	sqlite3_free(name);
}

/** store_room - the bytes that are left on the store's file system, and all */
bool store_room(int64_t *left, int64_t *all)
{
	struct statvfs fs;

	if (statvfs(path, &fs) < 0)
		return false;
	*left = (int64_t)fs.f_bavail * fs.f_frsize;
	*all = (int64_t)fs.f_blocks * fs.f_frsize;
	return true;
}

/**
 * store_reach - have disk blocks for @size bytes of the database, as far as the file system can say
 *
 * Gives false, with errno, if there is no room. SQLite lets the file be longer than the database,
 * and cuts it off once all of the log is there.
 */
bool store_reach(int64_t size)
{
	struct stat st;

	if (fstat(file, &st) < 0)
		return false;
	if (st.st_size >= size)
		return true;
	size = (size + PIECE - 1) / PIECE * PIECE;
	errno = posix_fallocate(file, st.st_size, size - st.st_size);
	/* The file system can't reserve blocks. */
	return !errno || errno == EINVAL || errno == EOPNOTSUPP;
}

void sqlite_close(void)
{
	sqlite3_close_v2(db);
}

int64_t sqlite_meta(const char *name, int64_t otherwise)
{
	sqlite3_stmt *stmt = sqlite_prepare(db, "SELECT value FROM meta WHERE name = ?1");
	int64_t value = otherwise;

	sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	if (sqlite3_finalize(stmt) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
	return value;
}

/** store_keep_past - store the clocks for the next start, if the disk has room */
void store_keep_past(int64_t boot, int64_t offset)
{
	char sql[200];

	if (sqlite_meta("boot", 0) == boot && sqlite_meta("offset", 0) == offset)
		return;
	snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta VALUES('boot', %lld),"
		 "('offset', %lld)", (long long)boot, (long long)offset);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		complain("%s can't be written: %s", path, sqlite3_errmsg(db));
}

/** store_tubes - call @each for each tube that holds jobs */
void store_tubes(void (*each)(const struct store_tube *tube))
{
	sqlite3_stmt *stmt = sqlite_prepare(db, "SELECT id, name, ready, delayed, buried,"
					    " urgent FROM tubes WHERE NOT (" EMPTY ")");

	while (sqlite3_step(stmt) == SQLITE_ROW) {
		struct store_tube tube = {
			.id = sqlite3_column_int64(stmt, 0),
			.name = (const char *)sqlite3_column_text(stmt, 1),
			.urgent = sqlite3_column_int64(stmt, 5),
		};

		for (int i = 0; i < STORED_STATES; i++)
			tube.count[i] = sqlite3_column_int64(stmt, 2 + i);
		each(&tube);
	}
	if (sqlite3_finalize(stmt) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
}

void sqlite_schedules(void (*each)(const struct schedule_row *row))
{
	sqlite3_stmt *stmt = sqlite_prepare(db, "SELECT id, name, digest, next, paused, gone, since"
					    " FROM schedules");

	while (sqlite3_step(stmt) == SQLITE_ROW) {
		struct schedule_row row = {
			.id = sqlite3_column_int64(stmt, 0),
			.name = (const char *)sqlite3_column_text(stmt, 1),
			.digest = sqlite3_column_int64(stmt, 2),
			.next = sqlite3_column_int64(stmt, 3),
			.paused = sqlite3_column_int(stmt, 4),
			.gone = sqlite3_column_int64(stmt, 5),
			.since = sqlite3_column_int64(stmt, 6),
		};

		each(&row);
	}
	if (sqlite3_finalize(stmt) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
}

/** store_last_burial - the order of the job that was buried last in a tube, or 0 */
int64_t store_last_burial(int64_t tube)
{
	sqlite3_stmt *stmt = sqlite_prepare(db, "SELECT max(ord) FROM jobs INDEXED BY jobs_in_order"
					    " WHERE tube = ?1 AND state = 2");
	int64_t last = 0;

	sqlite3_bind_int64(stmt, 1, tube);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		last = sqlite3_column_int64(stmt, 0);
	if (sqlite3_finalize(stmt) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
	return last;
}

int64_t store_next_tube_id(void)
{
	return ask("SELECT ifnull(max(id), 0) + 1 FROM tubes");
}

/* Ends the read transaction of a statement. */
static bool done(sqlite3_stmt *stmt, bool fine)
{
	if (!fine)
		complain("%s can't be read: %s", path, sqlite3_errmsg(db));
	sqlite3_reset(stmt);
	return fine;
}

/** store_tube_id - the number of a tube that the store knows, or 0 */
bool store_tube_id(const char *name, int64_t *id)
{
	int ret;

	sqlite3_bind_text(get_tube, 1, name, -1, SQLITE_STATIC);
	ret = sqlite3_step(get_tube);
	*id = ret == SQLITE_ROW ? sqlite3_column_int64(get_tube, 0) : 0;
	return done(get_tube, ret == SQLITE_ROW || ret == SQLITE_DONE);
}

static bool copy_body(sqlite3_stmt *stmt, int column, char **body)
{
	int size = sqlite3_column_bytes(stmt, column);

	*body = malloc(size ? size : 1);
	if (!*body)
		return false;
	if (size)
		memcpy(*body, sqlite3_column_blob(stmt, column), size);
	return true;
}

static bool take_row(sqlite3_stmt *stmt, struct row *row)
{
	uint32_t *counters[] = {
		&row->reserves, &row->timeouts, &row->releases, &row->buries, &row->kicks,
		&row->size,
	};

	row->id = sqlite3_column_int64(stmt, 0);
	row->tube = sqlite3_column_int64(stmt, 1);
	row->state = sqlite3_column_int(stmt, 2);
	row->ord = sqlite3_column_int64(stmt, 3);
	row->pri = sqlite3_column_int64(stmt, 4);
	row->delay = sqlite3_column_int64(stmt, 5);
	row->ttr = sqlite3_column_int64(stmt, 6);
	row->created = sqlite3_column_int64(stmt, 7);
	for (int i = 0; i < 6; i++)
		*counters[i] = sqlite3_column_int64(stmt, 8 + i);
	row->scheduled = sqlite3_column_int64(stmt, 15);
	row->tries = sqlite3_column_int64(stmt, 16);
	row->body = NULL;
	if (row->state > BURIED)
		return false;
	return sqlite3_column_type(stmt, 14) == SQLITE_NULL || copy_body(stmt, 14, &row->body);
}

/** sqlite_pushed - the tabs that were pushed, whether they are known or not */
bool sqlite_pushed(struct pushed *pushed)
{
	static sqlite3_stmt *get;
	int ret;

	if (!get)
		get = sqlite_prepare(db, "SELECT body FROM jobs INDEXED BY jobs_in_order"
				     " WHERE tube = (SELECT id FROM tubes WHERE name = '"
				     TABS_TUBE "') AND state = 1 ORDER BY ord LIMIT 1");
	ret = sqlite3_step(get);
	pushed->version = ret == SQLITE_ROW;
	pushed->size = ret == SQLITE_ROW ? sqlite3_column_bytes(get, 0) : 0;
	return done(get, ret == SQLITE_DONE ||
		    (ret == SQLITE_ROW && copy_body(get, 0, &pushed->text)));
}

bool store_job(int64_t id, struct row *row, bool *found)
{
	int ret;

	sqlite3_bind_int64(get_job, 1, id);
	ret = sqlite3_step(get_job);
	*found = ret == SQLITE_ROW;
	return done(get_job, ret == SQLITE_DONE || (*found && take_row(get_job, row)));
}

bool store_body(int64_t id, char **body, uint32_t *size)
{
	bool fine;

	sqlite3_bind_int64(get_body, 1, id);
	fine = sqlite3_step(get_body) == SQLITE_ROW && copy_body(get_body, 0, body);
	if (fine)
		*size = sqlite3_column_bytes(get_body, 0);
	return done(get_body, fine);
}

static struct run_row run_of(sqlite3_stmt *stmt, int64_t schedule)
{
	return (struct run_row){
		.schedule = schedule,
		.time = sqlite3_column_int64(stmt, 0),
		.shard = sqlite3_column_int64(stmt, 1),
		.job = sqlite3_column_int64(stmt, 2),
		.result = sqlite3_column_int(stmt, 3),
		.created = sqlite3_column_int64(stmt, 4),
		.ended = sqlite3_column_int64(stmt, 5),
		.count = sqlite3_column_int64(stmt, 6),
	};
}

static bool last_runs_of(struct runs_asked *asked, int64_t schedule)
{
	int ret;

	sqlite3_bind_int64(get_runs, 1, schedule);
	sqlite3_bind_int64(get_runs, 2, asked->most);
	while ((ret = sqlite3_step(get_runs)) == SQLITE_ROW) {
		const struct run_row run = run_of(get_runs, schedule);

		runs_add(asked, &run);
	}
	return done(get_runs, ret == SQLITE_DONE);
}

static bool how_of(struct runs_asked *asked, int64_t schedule)
{
	struct run_row run, ended = { 0 };
	int ret;

	sqlite3_bind_int64(get_runs, 1, schedule);
	sqlite3_bind_int64(get_runs, 2, -1);
	for (int n = 0; (ret = sqlite3_step(get_runs)) == SQLITE_ROW; n++) {
		run = run_of(get_runs, schedule);
		if (!n)
			runs_add(asked, &run);
		if (ended.time ? run.time != ended.time : n == RUNS_HOW)
			break;
		if (run.result != RUN_OPEN && run.result != RUN_SKIPPED &&
		    (!ended.time || ended.result == RUN_DONE))
			ended = run;
	}
	if (ended.time)
		runs_add(asked, &ended);
	if (!done(get_runs, ret == SQLITE_ROW || ret == SQLITE_DONE))
		return false;
	sqlite3_bind_int64(get_open, 1, schedule);
	ret = sqlite3_step(get_open);
	if (ret == SQLITE_ROW) {
		run = run_of(get_open, schedule);
		runs_add(asked, &run);
	}
	return done(get_open, ret == SQLITE_ROW || ret == SQLITE_DONE);
}

static bool traces_of(struct runs_asked *asked, int64_t job)
{
	size_t before = asked->traced;
	int ret;

	sqlite3_bind_int64(get_traces, 1, job);
	while ((ret = sqlite3_step(get_traces)) == SQLITE_ROW)
		traces_tell(asked, job, sqlite3_column_blob(get_traces, 0),
			    sqlite3_column_bytes(get_traces, 0));
	traces_sort(asked, before);
	return done(get_traces, ret == SQLITE_DONE);
}

static bool all_traces(struct runs_asked *asked)
{
	bool fine = !asked->job || traces_of(asked, asked->job);

	for (size_t i = 0; asked->trace && fine && i < asked->count; i++)
		fine = traces_of(asked, -asked->schedules[i]);
	for (size_t i = 0; asked->trace && fine && i < asked->found; i++)
		fine = asked->runs[i].job <= 0 || traces_of(asked, asked->runs[i].job);
	return fine;
}

/* Done in the loop: to read what is in memory, or nearly so, is shorter than a way to a thread. */
void sqlite_last_runs(struct runs_asked *asked)
{
	asked->op.failed = false;
	for (size_t i = 0; i < asked->count && !asked->op.failed; i++)
		asked->op.failed = !(asked->most ? last_runs_of(asked, asked->schedules[i]) :
				     how_of(asked, asked->schedules[i]));
	asked->op.failed = asked->op.failed || !all_traces(asked);
	asked->op.done(&asked->op);
	free(asked);
}

/**
 * store_letter - find the next dead letter of a tube
 * @tube: the tube
 * @after: the id of the one before it
 * @id: out: its id; 0: there is none
 * @from: out: the tube from which it came, of TUBE_NAME_MAX + 1 bytes
 *
 * Return: false, having complained, if the store can't be read.
 */
bool store_letter(int64_t tube, int64_t after, int64_t *id, char *from)
{
	int ret;

	sqlite3_bind_int64(get_letter, 1, tube);
	sqlite3_bind_int64(get_letter, 2, after);
	ret = sqlite3_step(get_letter);
	*id = ret == SQLITE_ROW ? sqlite3_column_int64(get_letter, 0) : 0;
	if (*id)
		snprintf(from, TUBE_NAME_MAX + 1, "%s",
			 (const char *)sqlite3_column_text(get_letter, 1));
	return done(get_letter, *id || ret == SQLITE_DONE);
}

/* Takes rows until @each says no (then *more is false) or there are no more. */
static bool take_rows(sqlite3_stmt *stmt, struct cursor *cursor, bool *more,
		      bool (*each)(struct row *row, void *arg), void *arg)
{
	struct row row;
	int ret = SQLITE_DONE;

	while (*more && (ret = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (!take_row(stmt, &row))
			break;
		cursor->ord = row.ord;
		cursor->id = row.id;
		*more = each(&row, arg);
	}
	return done(stmt, ret == SQLITE_DONE || !*more);
}

/**
 * store_in_order - read jobs of a tube and state in their order
 * @tube: the tube
 * @state: the state
 * @cursor: where to begin, exclusive; out: the last job
 * @end: out: there are no more
 * @each: called for each job, and owns the body; gives false to stop
 * @arg: for @each
 */
bool store_in_order(int64_t tube, enum state state, struct cursor *cursor, bool *end,
		    bool (*each)(struct row *row, void *arg), void *arg)
{
	bool more = true, fine;

	*end = false;
	sqlite3_bind_int64(same_ord, 1, tube);
	sqlite3_bind_int(same_ord, 2, state);
	sqlite3_bind_int64(same_ord, 3, cursor->ord);
	sqlite3_bind_int64(same_ord, 4, cursor->id);
	fine = take_rows(same_ord, cursor, &more, each, arg);
	if (!fine || !more)
		return fine;
	sqlite3_bind_int64(next_ord, 1, tube);
	sqlite3_bind_int(next_ord, 2, state);
	sqlite3_bind_int64(next_ord, 3, cursor->ord);
	fine = take_rows(next_ord, cursor, &more, each, arg);
	*end = fine && more;
	return fine;
}

/** store_due - store_in_order() for delayed jobs of all tubes, by the time at which they are due */
bool store_due(struct cursor *cursor, int64_t until, bool *end,
	       bool (*each)(struct row *row, void *arg), void *arg)
{
	bool more = true, fine;

	*end = false;
	sqlite3_bind_int64(same_due, 1, cursor->ord);
	sqlite3_bind_int64(same_due, 2, cursor->id);
	fine = take_rows(same_due, cursor, &more, each, arg);
	if (!fine || !more)
		return fine;
	sqlite3_bind_int64(next_due, 1, cursor->ord);
	sqlite3_bind_int64(next_due, 2, until);
	fine = take_rows(next_due, cursor, &more, each, arg);
	*end = fine && more;
	return fine;
}
