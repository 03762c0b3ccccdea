/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libpq is loaded only where a store is in PostgreSQL: it brings a score of other libraries, for
 * which a server without PostgreSQL would wait before it listens.
 */
#ifndef TWHEELD_LIBPQ_H
#define TWHEELD_LIBPQ_H

#include <libpq-fe.h>

/* The functions of libpq that the server calls */
#define LIBPQ(each) \
	each(PQclear) each(PQconnectdbParams) each(PQconninfoFree) each(PQconninfoParse) \
	each(PQconsumeInput) each(PQenterPipelineMode) each(PQerrorMessage) \
	each(PQexitPipelineMode) each(PQfinish) each(PQflush) \
	each(PQfreemem) each(PQgetResult) each(PQgetisnull) each(PQgetlength) \
	each(PQgetvalue) each(PQisBusy) each(PQisnonblocking) each(PQisthreadsafe) \
	each(PQnotifies) each(PQntuples) each(PQpipelineSync) each(PQresultErrorField) \
	each(PQresultErrorMessage) each(PQresultStatus) each(PQsendPrepare) \
	each(PQsendQuery) each(PQsendQueryPrepared) each(PQsetNoticeReceiver) \
	each(PQsetnonblocking) each(PQsocket) each(PQstatus) each(PQtransactionStatus)

#define LIBPQ_MEMBER(name) typeof(name) *name;

struct libpq {
	LIBPQ(LIBPQ_MEMBER)
};

extern struct libpq libpq;

#define PQclear libpq.PQclear
#define PQconnectdbParams libpq.PQconnectdbParams
#define PQconninfoFree libpq.PQconninfoFree
#define PQconninfoParse libpq.PQconninfoParse
#define PQconsumeInput libpq.PQconsumeInput
#define PQenterPipelineMode libpq.PQenterPipelineMode
#define PQerrorMessage libpq.PQerrorMessage
#define PQexitPipelineMode libpq.PQexitPipelineMode
#define PQfinish libpq.PQfinish
#define PQflush libpq.PQflush
#define PQfreemem libpq.PQfreemem
#define PQgetResult libpq.PQgetResult
#define PQgetisnull libpq.PQgetisnull
#define PQgetlength libpq.PQgetlength
#define PQgetvalue libpq.PQgetvalue
#define PQisBusy libpq.PQisBusy
#define PQisnonblocking libpq.PQisnonblocking
#define PQisthreadsafe libpq.PQisthreadsafe
#define PQnotifies libpq.PQnotifies
#define PQntuples libpq.PQntuples
#define PQpipelineSync libpq.PQpipelineSync
#define PQresultErrorField libpq.PQresultErrorField
#define PQresultErrorMessage libpq.PQresultErrorMessage
#define PQresultStatus libpq.PQresultStatus
#define PQsendPrepare libpq.PQsendPrepare
#define PQsendQuery libpq.PQsendQuery
#define PQsendQueryPrepared libpq.PQsendQueryPrepared
#define PQsetNoticeReceiver libpq.PQsetNoticeReceiver
#define PQsetnonblocking libpq.PQsetnonblocking
#define PQsocket libpq.PQsocket
#define PQstatus libpq.PQstatus
#define PQtransactionStatus libpq.PQtransactionStatus

void libpq_load(void);

#endif
